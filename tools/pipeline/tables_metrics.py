"""The metrics of `odradek pipeline tables`, which an HTTP listener serves to Prometheus."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from odradek.pipeline.jobs import JobError

if TYPE_CHECKING:
    from odradek.pipeline.jobs.following import Round

_TIMEOUT_S = 30  # of a client that is silent
_PREFIX = "odradek_tables_"
_TOTALS = {
    "rounds": "Rounds that have ended.",
    "failed_rounds": "Rounds that have failed.",
    "records": "Archived records.",
    "lost_offsets": "Offsets that were deleted before they could be archived.",
    "skipped_offsets": "Offsets that could not be read.",
}


class TablesMetrics(Collector):
    """What the rounds have done. A thread of the listener reads it while rounds are added."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: float | None = None  # of the last round that has not failed
        self._problems: Sequence[str] = ()
        self._waiting: dict[str, int] = {}
        self._totals = dict.fromkeys(_TOTALS, 0)

    def add(self, done: "Round", problems: Sequence[str]) -> None:
        """Add a round that has just ended, and what is wrong now."""
        total = done.summary.total()
        with self._lock:
            self._problems = problems
            if not done.error:
                self._began = self._clock() - done.seconds
                self._waiting = {name: topic.waiting for name, topic in done.summary.topics.items()}
            for name, value in (
                ("rounds", 1),
                ("failed_rounds", int(bool(done.error))),
                ("records", total.records + total.dead_letters),
                ("lost_offsets", total.lost),
                ("skipped_offsets", total.skipped),
            ):
                self._totals[name] += value

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics, as prometheus-client takes them."""
        with self._lock:
            for name, value in self._totals.items():
                help_text = _TOTALS[name]
                yield CounterMetricFamily(_PREFIX + name, help_text, value=value)
            lag = GaugeMetricFamily(
                f"{_PREFIX}lag_seconds", "Since the begin of the last round that has not failed."
            )
            if self._began is not None:
                lag.add_metric([], self._clock() - self._began)
            yield lag
            waiting = GaugeMetricFamily(
                f"{_PREFIX}waiting_offsets",
                "Offsets in open transactions, which wait.",
                labels=["topic"],
            )
            for topic, offsets in sorted(self._waiting.items()):
                waiting.add_metric([topic], offsets)
            yield waiting
            yield GaugeMetricFamily(
                f"{_PREFIX}problems", "How many problems are open.", value=len(self._problems)
            )
            problems = GaugeMetricFamily(
                f"{_PREFIX}problem", "Each open problem.", labels=["problem"]
            )
            for problem in self._problems:
                problems.add_metric([problem], 1)
            yield problems


@contextmanager
def listening(address: tuple[str, int], metrics: TablesMetrics) -> Iterator[int]:
    """Serve the metrics meanwhile; yields the port. Raises JobError."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = generate_latest(metrics)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing for a request."""

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET

    try:
        families = {each[0] for each in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)}
        if socket.AF_INET not in families:
            Server.address_family = socket.AF_INET6
        server = Server(address, Handler)
    except (OSError, UnicodeError) as error:  # the latter: no name of a host
        raise JobError(f"cannot listen at {address[0]}:{address[1]}: {error}") from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
