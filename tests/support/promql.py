"""Finds the metrics and labels that a PromQL expression names. It is no parser of PromQL."""

import re
from collections.abc import Iterator
from typing import NamedTuple

ADDED_BY_PROMETHEUS = {"instance", "job"}
VARIABLES = {"$instance": ".+", "$topic": ".+", "$__rate_interval": "1m"}
_SELECTOR = re.compile(r"\b((?:kafka|odradek|process)_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!=|!~|=)"([^"]*)"')
_GROUPING = re.compile(r"\b(?:by|on) \(([^)]*)\)")
_TEMPLATE = re.compile(r"\{\{ *(?:\$labels\.)?(\w+) *\}\}")


class Matcher(NamedTuple):
    """One condition on a label; `operator` is =, !=, =~ or !~."""

    label: str
    operator: str
    value: str

    def accepts(self, value: str) -> bool:
        """Whether a label with this value, empty if it is missing, is selected."""
        is_equal = self.value == value
        if self.operator in ("=~", "!~"):
            is_equal = re.fullmatch(VARIABLES.get(self.value, self.value), value) is not None
        return is_equal is (self.operator in ("=", "=~"))


class Selector(NamedTuple):
    """A metric, and the conditions on labels that the broker sets."""

    metric: str
    matchers: tuple[Matcher, ...]


def selectors(expression: str) -> Iterator[Selector]:
    """Every metric that the expression reads."""
    for name, matchers in _SELECTOR.findall(expression):
        found = (Matcher(*parts) for parts in _MATCHER.findall(matchers))
        yield Selector(name, tuple(m for m in found if m.label not in ADDED_BY_PROMETHEUS))


def grouping_labels(expression: str) -> set[str]:
    """The labels by which the expression groups its result."""
    lists = _GROUPING.findall(expression)
    return {label.strip() for text in lists for label in text.split(",")}


def template_labels(text: str) -> set[str]:
    """The labels that a legend or an annotation shows."""
    return set(_TEMPLATE.findall(text))
