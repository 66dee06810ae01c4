"""The metrics of `odradek pipeline tables`, which an HTTP listener serves to Prometheus.

odradek_tables_lag_seconds            since the begin of the last round that has not failed
odradek_tables_problems               open problems; odradek_tables_problem{problem="…"} is each
odradek_tables_waiting_offsets        by topic: offsets in open transactions, which wait
odradek_tables_rounds_total           rounds that have ended
odradek_tables_failed_rounds_total    those of them that have failed
odradek_tables_records_total          archived records
odradek_tables_lost_offsets_total     offsets that were deleted before they could be archived
odradek_tables_skipped_offsets_total  offsets that could not be read
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from odradek.pipeline.jobs import JobError

if TYPE_CHECKING:
    from odradek.pipeline.jobs.following import Round

_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "odradek_tables_"


class TablesMetrics:
    """What the rounds have done. A thread of the listener reads it while rounds are added."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._began: float | None = None  # of the last round that has not failed
        self._problems: Sequence[str] = ()
        self._waiting: dict[str, int] = {}
        self._totals = dict.fromkeys(
            ("rounds", "failed_rounds", "records", "lost_offsets", "skipped_offsets"), 0
        )

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

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, value in self._totals.items():
            yield f"# TYPE {_PREFIX}{name}_total counter"
            yield f"{_PREFIX}{name}_total {value}"
        if self._began is not None:
            yield f"# TYPE {_PREFIX}lag_seconds gauge"
            yield f"{_PREFIX}lag_seconds {self._clock() - self._began:.3f}"
        yield f"# TYPE {_PREFIX}waiting_offsets gauge"
        for topic, offsets in sorted(self._waiting.items()):
            yield f'{_PREFIX}waiting_offsets{{topic="{topic}"}} {offsets}'
        yield f"# TYPE {_PREFIX}problems gauge"
        yield f"{_PREFIX}problems {len(self._problems)}"
        yield f"# TYPE {_PREFIX}problem gauge"
        for problem in self._problems:
            yield f'{_PREFIX}problem{{problem="{_escaped(problem)}"}} 1'


@contextmanager
def listening(address: tuple[str, int], metrics: TablesMetrics) -> Iterator[int]:
    """Serve the metrics meanwhile; yields the port. Raises JobError."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", _CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing for a request."""

    try:
        server = ThreadingHTTPServer(address, Handler)
    except OSError as error:
        raise JobError(f"cannot listen at {address[0]}:{address[1]}: {error}") from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
