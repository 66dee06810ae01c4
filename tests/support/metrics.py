"""Reads a broker's HTTP listener, as Prometheus does."""

import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping

from prometheus_client.parser import text_string_to_metric_families

from tests.support.broker_process import BrokerProcess

TIMEOUT_SECONDS = 100.0  # a loaded machine may need long; a test that hangs still ends


class Series:
    """The series of one answer of /metrics."""

    def __init__(self, text: str) -> None:
        families = list(text_string_to_metric_families(text))
        self.types = {family.name: family.type for family in families}
        self.samples = [sample for family in families for sample in family.samples]

    def values(self, name: str, **labels: str) -> Iterator[float]:
        """The values of the series with that name and, among others, these labels."""
        for sample in self.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                yield sample.value

    def value(self, name: str, **labels: str) -> float:
        """The value of the only such series."""
        (value,) = self.values(name, **labels)
        return value

    def labels(self, name: str) -> list[Mapping[str, str]]:
        """The labels of each series with that name."""
        return [sample.labels for sample in self.samples if sample.name == name]


def http_port(broker: BrokerProcess) -> int:
    """The port that the broker has logged."""
    found = re.findall(r"HTTP listens on 127\.0\.0\.1:(\d+)", broker.log_text())
    return int(found[-1])


def get(port: int, path: str) -> tuple[int, str]:
    """Status and body of an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=TIMEOUT_SECONDS) as a:
            return a.status, a.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scrape(port: int) -> Series:
    """The metrics now."""
    status, text = get(port, "/metrics")
    assert status == 200, text
    return Series(text)
