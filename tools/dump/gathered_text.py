"""Output that is written in large pieces: a dump is millions of small ones."""

from typing import TextIO


class GatheredText:
    """What is written to it goes to the stream now and then."""

    _CHARACTERS = 1 << 18

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._parts: list[str] = []
        self._size = 0

    def write(self, text: str) -> None:
        """What has gathered goes when it is much."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """All of it goes."""
        self._stream.write("".join(self._parts))
        self._stream.flush()
        self._parts.clear()
        self._size = 0
