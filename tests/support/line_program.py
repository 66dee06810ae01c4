"""A program that answers each line with one, for as long as it is asked."""

import json
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

LIMIT_SECONDS = 100.0
ANSWER_SECONDS = 180.0


class LineProgram:
    """One process, started at once; it ends with its `with`, because its input does."""

    def __init__(
        self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> None:
        self._command = [str(word) for word in command]
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Close its input, and wait. Raises TimeoutExpired; it is killed then."""
        try:
            self._process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise

    def ask(self, line: str) -> str:
        """The line with which it answers one. Without an answer after a while it is killed."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        late = threading.Timer(ANSWER_SECONDS, self._process.kill)
        late.start()
        try:
            to.write(line.encode() + b"\n")
            to.flush()
            answer = back.readline()
        finally:
            late.cancel()
        assert answer, f"{self._command} did not answer {line!r}: see standard error"
        return answer.decode().rstrip("\n")

    def ask_json(self, question: dict[str, Any]) -> dict[str, Any]:
        """The same for a question and an answer that are JSON objects."""
        answer: dict[str, Any] = json.loads(self.ask(json.dumps(question)))
        return answer

    def read(self, size: int) -> bytes:
        """What comes behind an answer that told of so many bytes."""
        assert self._process.stdout is not None
        return self._process.stdout.read(size)
