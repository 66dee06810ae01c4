"""Apache Kafka's consumers of the new protocol, in a process of their own: ConsumerMembers.java."""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.java_tools import JAVA_TOOLS

PROGRAM = Path(__file__).with_name("ConsumerMembers.java")
LIMIT_SECONDS = 20.0


class JavaMembers:
    """Some consumers, told one thing after the other; its `with` ends in their sudden death."""

    def __init__(self, bootstrap: str) -> None:
        self._process = subprocess.Popen(
            [*JAVA_TOOLS.java(), str(PROGRAM), bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.die()

    def die(self) -> None:
        """They are gone, and nobody was told."""
        self._process.communicate(timeout=LIMIT_SECONDS)

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
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write("\t".join(words) + "\n")
        to.flush()
        answer = back.readline().strip()
        assert answer == "done", f"{words}: {answer or 'the process ended: see standard error'}"
