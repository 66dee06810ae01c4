"""The metrics of `odradek pipeline tables`, read as Prometheus does."""

import socket

import pytest

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.summary import ArchiveSummary, TopicSummary
from odradek.pipeline.jobs.following import Round
from odradek.tools.pipeline import tables_metrics
from odradek.tools.pipeline.tables_metrics import TablesMetrics, listening
from tests.support.metrics import Series, get

LISTENER = ("127.0.0.1", 0)


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def done(seconds: float, error: str = "", **counts: int) -> Round:
    return Round(ArchiveSummary(topics={"orders": TopicSummary(**counts)}), seconds, error)


def test_lag_and_open_problems_are_those_of_now() -> None:
    clock = Clock()
    metrics = TablesMetrics(clock)
    with listening(LISTENER, metrics) as port:

        def read() -> Series:
            return Series(get(port, "/metrics")[1])

        assert list(read().values("odradek_tables_lag_seconds")) == []
        metrics.add(done(2, records=5, dead_letters=1, waiting=3, skipped=4, lost=2), ())
        clock.now_s += 10
        assert read().value("odradek_tables_lag_seconds") == 12
        assert read().value("odradek_tables_waiting_offsets", topic="orders") == 3
        problems = ['orders-0: the file "a\\b"', "no space\nleft"]
        metrics.add(done(1, error="no space\nleft"), problems)
        clock.now_s += 5
        found = read()
        assert found.value("odradek_tables_lag_seconds") == 17
        assert found.value("odradek_tables_problems") == 2
        assert [each["problem"] for each in found.labels("odradek_tables_problem")] == problems
        metrics.add(done(1, records=1), ())
        found = read()
        assert found.value("odradek_tables_lag_seconds") == 1
        assert found.value("odradek_tables_problems") == 0
        totals = {
            sample.name.removeprefix("odradek_tables_"): sample.value
            for sample in found.samples
            if sample.name.endswith("_total")
        }
        assert totals == {
            "rounds_total": 3,
            "failed_rounds_total": 1,
            "records_total": 7,
            "lost_offsets_total": 2,
            "skipped_offsets_total": 4,
        }
        assert get(port, "/other")[0] == 404


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(LISTENER) as other:
        address = other.getsockname()
        with pytest.raises(JobError, match="cannot listen at"), listening(address, TablesMetrics()):
            pass


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_any_address_of_this_machine_can_be_listened_at(host: str) -> None:
    with (
        listening((host, 0), TablesMetrics()) as port,
        socket.create_connection((host, port)) as client,
    ):
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert client.makefile("rb").readline().endswith(b" 200 OK\r\n")


def test_a_client_that_is_silent_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_metrics, "_TIMEOUT_S", 0.01)
    with (
        listening(LISTENER, TablesMetrics()) as port,
        socket.create_connection((LISTENER[0], port), timeout=60) as client,
    ):
        assert client.recv(1) == b""
