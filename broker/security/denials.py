"""Logs denied requests, in the words of Kafka's authorizer (its logger kafka.authorizer.logger).

Clients repeat what is denied, often many times a second. In each window of time a denial is logged
once, and no more than MAX_LINES denials are logged. The others are counted, and the next window
begins with their number.
"""

import logging
from collections.abc import Callable

from odradek.coordinator.metadata.host_patterns import java_host
from odradek.protocol.api_keys import ApiKey

from .decision import Question, Rule

logger = logging.getLogger("odradek.authorizer")

WINDOW_MS = 10_000
MAX_LINES = 100
MAX_TEXT = 1000


class DenialLog:
    """The denials of the current window. `rule_for` finds the rule that denied a request."""

    def __init__(self, rule_for: Callable[[Question], Rule]) -> None:
        self._rule_for = rule_for
        self._logged: set[Question] = set()
        self._omitted = 0
        self._window_start_ms = 0

    def log(self, question: Question, api_key: ApiKey, now_ms: int) -> None:
        """Log one denial, or count it. `now_ms` is a time of a clock that never jumps."""
        if now_ms - self._window_start_ms >= WINDOW_MS:
            self._begin_window(now_ms)
        if question in self._logged or len(self._logged) >= MAX_LINES:
            self._omitted += 1
            return
        self._logged.add(question)
        logger.info(
            "Principal = %s is Denied operation = %s from host = %s on resource = %s:LITERAL:%s"
            " for request = %s with resourceRefCount = 1 based on rule %s",
            _on_one_line(str(question.principal)),
            question.operation.name,
            java_host(question.client_host),
            question.resource_type.display_name,
            _on_one_line(question.name),
            api_key.display_name,
            _on_one_line(str(self._rule_for(question))),
        )

    def _begin_window(self, now_ms: int) -> None:
        if self._omitted:
            logger.info("%d more denials were not logged", self._omitted)
        self._logged.clear()
        self._omitted = 0
        self._window_start_ms = now_ms


def _on_one_line(text: str) -> str:
    """A text of a client, cut, and with escapes for characters that would break the line."""
    text = text[:MAX_TEXT]
    return text if text.isprintable() else text.encode("unicode_escape").decode()
