"""Conversations in the versions that Kafka 4.0 dropped, as the last Kafka that spoke them had them.

A golden file holds one conversation: a line of JSON for each request, with its bytes and those of
Apache Kafka's answer in hex. A replay sends the very same bytes (two zlibs make two gzips) and
compares what the answers say: see answers.py.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.schema import Message
from tests.conformance.conversation import Conversation, advertised_versions, response_of
from tests.support.wire import ConnectionEndedError, WireClient, request_frame

CLOSED, STILL_OPEN = "closed", "still open"
CLIENT_ID = "legacy"
LENGTH_BYTES = 4
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "legacy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One request and its answer."""

    title: str
    api: str  # the request's class
    version: int
    request: str  # hex: header and message
    answer: str  # hex: the message behind the header; or CLOSED, or STILL_OPEN


def golden_file(conversation: str) -> Path:
    """Where a conversation is kept."""
    return GOLDEN / f"{conversation}.jsonl"


def read_golden(file: Path) -> list[Line]:
    """The lines of a golden file."""
    return [Line(**json.loads(line)) for line in file.read_text().splitlines()]


def write_golden(file: Path, lines: Iterable[Line]) -> None:
    """Make a golden file of what was said."""
    file.write_text("".join(json.dumps(asdict(line)) + "\n" for line in lines))


class LegacyTalk:
    """Asks one broker, and writes the answers down.

    `recorded` are the lines of a golden file: their requests are sent in place of those given.
    """

    def __init__(self, port: int, recorded: Iterable[Line] | None = None) -> None:
        self.lines: list[Line] = []
        # For what is only needed: topics, groups, records of the newest format.
        self.modern = Conversation(port, advertised_versions(port))
        self._recorded: Iterator[Line] | None = None if recorded is None else iter(recorded)
        self._port = port
        self._client: WireClient | None = None

    def close(self) -> None:
        """End both connections."""
        self.modern.close()
        self._hang_up()

    def ask(self, title: str, request: Message, version: int) -> Any:
        """Send a request and write down its answer; returns it, or None where there was none."""
        frame = self._frame(title, request, version)
        try:
            self._connection.send(frame)
            answer = bytes(self._connection.read_frame())
        except (ConnectionEndedError, ConnectionResetError):
            self._hang_up()
            self._note(title, request, version, frame, CLOSED)
            return None
        assert answer[:4] == frame[8:12], "an answer to another request"
        response = response_of(type(request))
        message = answer[5 if version in response.SPEC.flexible else 4 :]
        self._note(title, request, version, frame, message.hex())
        return response.decode(message, version)

    def tell(self, title: str, request: Message, version: int) -> None:
        """Send a request that gets no answer; write down whether the connection outlives it."""
        frame = self._frame(title, request, version)
        try:
            self._connection.send(frame)
            self._connection.ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._note(title, request, version, frame, STILL_OPEN)
        except (ConnectionEndedError, ConnectionResetError):
            self._hang_up()
            self._note(title, request, version, frame, CLOSED)

    @property
    def _connection(self) -> WireClient:
        if self._client is None:
            self._client = WireClient(self._port, client_id=CLIENT_ID)
        return self._client

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _frame(self, title: str, request: Message, version: int) -> bytes:
        if self._recorded is None:
            return request_frame(request, version, len(self.lines), CLIENT_ID)
        line = next(self._recorded)
        assert (line.title, line.version) == (title, version), f"{line.title}: golden file too old"
        payload = bytes.fromhex(line.request)
        return len(payload).to_bytes(LENGTH_BYTES, "big") + payload

    def _note(self, title: str, request: Message, version: int, frame: bytes, answer: str) -> None:
        self.lines.append(
            Line(
                title=title,
                api=type(request).__name__,
                version=version,
                request=frame[LENGTH_BYTES:].hex(),
                answer=answer,
            )
        )
