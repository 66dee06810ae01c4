"""Apache Kafka's consumers of the new protocol, in a process of their own: ConsumerMembers.java."""

from tests.support.java_program import JavaProgram


class JavaMembers(JavaProgram):
    """Some consumers, told one thing after the other; its `with` ends in their sudden death."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__("ConsumerMembers.java", bootstrap)

    def join(self, name: str, group: str, **settings: str) -> None:
        """A consumer joins, and has its first partitions; `topics` or `regex` say of what."""
        pairs = (f"{key.replace('_', '.')}={value}" for key, value in settings.items())
        self._do("join", name, group, *pairs)

    def wait_for(self, name: str, partitions: int) -> None:
        """Until the consumer has so many partitions."""
        self._do("assigned", name, str(partitions))

    def commit(self, name: str, offset: int) -> None:
        """Commit that offset of each partition that the consumer has."""
        self._do("commit", name, str(offset))

    def close(self, name: str, *, stays: bool) -> None:
        """The consumer ends; a static one that stays keeps its place for a while."""
        self._do("close", name, "stay" if stays else "leave")

    def _do(self, *words: str) -> None:
        answer = self.ask("\t".join(words))
        assert answer == "done", f"{words}: {answer}"
