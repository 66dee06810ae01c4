"""Answers of many connections: what one turn of the event loop sends of them."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from odradek.broker.network import answer_sender
from odradek.broker.network.answer_sender import FILE_CHUNK_BYTES, AnswerSender
from odradek.broker.turns.turn_queue import TurnQueue
from odradek.broker.turns.turns import SEND_S
from odradek.storage.log import RecordsSlice

CONNECTIONS = 30
CHUNKS = 6
# So many chunks take the time of a turn.
CHUNKS_OF_A_TURN = 4


class Machine:
    """An event loop with a clock: `now_s` goes on when bytes are sent, and only then."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.sent: list[Output] = []
        self.soon: list[Callable[[], None]] = []
        self.writers: dict[int, Callable[[], None]] = {}

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def add_writer(self, descriptor: int, callback: Callable[[], None]) -> None:
        self.writers[descriptor] = callback

    def remove_writer(self, descriptor: int) -> None:
        del self.writers[descriptor]

    def turn(self) -> int:
        """Run one turn. Returns the number of chunks that were sent."""
        before = len(self.sent)
        soon, self.soon = self.soon, []
        for callback in [*soon, *self.writers.values()]:
            callback()
        return len(self.sent) - before


class Output:
    """A socket that takes a chunk at once; `blocks`: the next call finds it full."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine = machine
        self.number = number
        self.chunks = 0
        self.blocks = False
        self.was_sent = False

    def send(self, data: memoryview, flags: int = 0, /) -> int:
        return len(data)

    def send_file(self, file: object, position: int, count: int) -> int:
        if self.blocks:
            self.blocks = False
            raise BlockingIOError
        self.machine.now_s += SEND_S / CHUNKS_OF_A_TURN
        self.machine.sent.append(self)
        self.chunks += 1
        return count

    def fileno(self) -> int:
        return self.number

    def wire_bytes(self) -> tuple[int, int]:
        return 10, self.number

    def close(self) -> None:
        """Nothing is open."""

    # What the owner of a sender is told.

    def on_blocked(self) -> None:
        """It goes on by itself."""

    def on_progress(self) -> None:
        """It goes on by itself."""

    def on_sent(self) -> None:
        self.was_sent = True


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(answer_sender, "monotonic", lambda: made.now_s)
    return made


def senders(machine: Machine) -> list[tuple[AnswerSender, Output]]:
    """Connections on one machine, where all pages of files are cached."""
    support = SimpleNamespace(
        loop=machine,
        timer_ms=lambda: 0,
        send_turns=TurnQueue(machine, SEND_S, lambda: machine.now_s),  # type: ignore[arg-type] # as much of a loop as is needed
        files=SimpleNamespace(is_cached=lambda *_: True),
    )
    outputs = [Output(machine, number) for number in range(CONNECTIONS)]
    made = [(AnswerSender(support), output) for output in outputs]  # type: ignore[arg-type] # as above
    for sender, output in made:
        sender.open(output, output)
    return made


def large_answer(sender: AnswerSender) -> None:
    """Send an answer with a slice of a file that has CHUNKS chunks."""
    file = SimpleNamespace(path="file", fd=0)
    records = RecordsSlice(file, 0, CHUNKS * FILE_CHUNK_BYTES)  # type: ignore[arg-type] # as above
    sender.add_spliced(bytearray(b"head"), [(4, records)])


def turns_until_all_is_sent(machine: Machine, outputs: list[Output]) -> list[int]:
    """The number of chunks that each turn has sent."""
    turns = []
    while not all(output.was_sent for output in outputs):
        turns.append(machine.turn())
        assert len(turns) < CONNECTIONS * CHUNKS * 4, "it goes on without an end"
    return turns


def test_answers_that_begin_in_one_turn_send_for_the_time_of_a_turn(machine: Machine) -> None:
    pairs = senders(machine)
    for sender, _ in pairs:
        large_answer(sender)
    assert len(machine.sent) <= 2 * CHUNKS_OF_A_TURN
    turns = turns_until_all_is_sent(machine, [output for _, output in pairs])
    assert max(turns) <= 2 * CHUNKS_OF_A_TURN
    assert sum(turns) + 2 * CHUNKS_OF_A_TURN >= CONNECTIONS * CHUNKS


def test_sockets_that_take_bytes_again_in_one_turn_send_for_the_time_of_a_turn(
    machine: Machine,
) -> None:
    pairs = senders(machine)
    for sender, output in pairs:
        output.blocks = True
        large_answer(sender)
        machine.now_s += SEND_S
        machine.turn()  # each begins in a turn of its own
    assert {output.chunks for _, output in pairs} != {CHUNKS}
    turns = turns_until_all_is_sent(machine, [output for _, output in pairs])
    assert max(turns) <= 2 * CHUNKS_OF_A_TURN


def test_no_connection_waits_until_the_others_have_sent_everything(machine: Machine) -> None:
    pairs = senders(machine)
    for sender, _ in pairs:
        large_answer(sender)
    while min(output.chunks for _, output in pairs) == 0:
        machine.turn()
    assert sum(output.was_sent for _, output in pairs) <= 1


def test_a_connection_that_closes_while_it_waits_for_a_turn_sends_no_more(
    machine: Machine,
) -> None:
    pairs = senders(machine)
    for sender, _ in pairs:
        large_answer(sender)
    for sender, _ in pairs:
        sender.close()
    sent = len(machine.sent)
    while machine.soon:
        machine.turn()
    assert len(machine.sent) == sent


def test_an_answer_to_a_client_that_has_gone_meanwhile_is_dropped(machine: Machine) -> None:
    sender, _ = senders(machine)[0]
    sender.close()
    large_answer(sender)
    sender.flush()
    assert (machine.sent, machine.soon) == ([], [])


def test_the_bytes_on_the_wire_are_those_of_the_output_while_it_is_open(machine: Machine) -> None:
    sender, _ = senders(machine)[3]
    assert sender.wire_bytes == (10, 3)
    sender.close()
    assert sender.wire_bytes is None
    assert AnswerSender(SimpleNamespace()).wire_bytes is None  # type: ignore[arg-type] # as above
