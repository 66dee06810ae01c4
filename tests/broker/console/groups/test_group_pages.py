"""What the pages show of share groups and streams groups, in a browser."""

from collections.abc import Iterator

import pytest

from tests.broker.console.groups.members import cook, counter, crowd
from tests.conformance.share_reader import ACCEPT
from tests.support.broker_process import BrokerProcess
from tests.support.browser import PHONE, Browser, why_no_browser
from tests.support.committing import produce
from tests.support.console_client import ConsoleClient
from tests.support.topics import create_topic

_WHY_NOT = why_no_browser()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_WHY_NOT is not None, reason=str(_WHY_NOT)),
]


@pytest.fixture
def browser(console: ConsoleClient, browser_here: Browser) -> Iterator[Browser]:
    """A browser of a phone's size. No script of a page may have failed at the end of a test."""
    browser_here.base = f"http://127.0.0.1:{console.port}"
    browser_here.look(PHONE)
    browser_here.problems()
    yield browser_here
    browser_here.leave()
    assert browser_here.problems() == []


def test_locks_of_a_share_group(broker: BrokerProcess, browser: Browser) -> None:
    create_topic(broker.bootstrap, "orders", 1)
    produce(broker, "orders", 6)
    with cook(broker) as anna:
        anna.fetch(0, max_records=6)
        anna.acknowledge((0, 1, [ACCEPT]))
        browser.open("groups/cooks/share")
        browser.see("A lock lasts", "orders 0: 2 to 5", "acquired", "anna")
        assert not browser.is_wider_than_the_window()
        assert browser.findings_of_axe() == []


def test_tasks_of_a_streams_group(broker: BrokerProcess, browser: Browser) -> None:
    with counter(broker):
        browser.open("groups/counters/tasks")
        browser.see("counter", "0 1: 7 of 9", "Topology", "lines", "counts")
        assert not browser.is_wider_than_the_window()
        assert browser.findings_of_axe() == []


@pytest.mark.parametrize(("tab", "table"), [("members", "Members"), ("tasks", "Tasks")])
def test_members_of_a_large_group_come_in_pages(
    broker: BrokerProcess, browser: Browser, tab: str, table: str
) -> None:
    rows = f"table[aria-label={table}] tbody tr"

    def count() -> int:
        return len(browser.driver.find_elements("css selector", rows))

    with crowd(broker, 101):
        browser.open(f"groups/crowd/{tab}")
        browser.see("1 to 100 of 101")
        assert count() == 100
        browser.click("Next")
        browser.see("101 to 101 of 101")
        browser.until(lambda: count() == 1)
