"""Makes pictures of the console for the documentation: `python -m tests.docs.console_pictures`.

Needs Chromium (tests/support/browser.py). It takes two minutes, because the overview draws what has
happened since the page was opened.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer

from odradek.broker.testing.broker import Broker
from tests.support.browser import DESKTOP, PHONE, running_browser, why_no_browser

PICTURES = Path(__file__).parents[2] / "docs" / "images" / "console"
PLACES = {
    "overview": "overview",
    "topics": "topics",
    "connections": "connections",
    "group": "groups/billing",
}
SIZES = {"desktop": DESKTOP, "phone": PHONE}
WATCHED_S = 90.0
LIMIT_S = 60.0


def main() -> None:
    """Make all pictures."""
    why_not = why_no_browser()
    if why_not is not None:
        sys.exit(why_not)
    with (
        tempfile.TemporaryDirectory() as directory,
        Broker(Path(directory) / "data", console=True) as broker,
        _clients(broker),
        running_browser(Path(directory) / "browser") as browser,
    ):
        browser.base = broker.console_url
        browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        browser.open("overview")
        time.sleep(WATCHED_S)
        for name, place in PLACES.items():
            for size, shape in SIZES.items():
                browser.look(shape)
                if place != "overview":  # whose plots begin when it is opened
                    browser.open(place)
                    time.sleep(5)
                browser.driver.save_screenshot(str(PICTURES / f"{name}-{size}.png"))


@contextmanager
def _clients(broker: Broker) -> Iterator[None]:
    """A producer, two groups, and a transaction that holds one of them back."""
    broker.create_topic("orders", partitions=3)
    broker.create_topic("payments", partitions=6)
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    ended = threading.Event()
    shop = Producer({**servers, "client.id": "shop", "linger.ms": 50})
    transactional = {"transactional.id": "refunds-7", "transaction.timeout.ms": 600_000}
    refunds = Producer({**servers, "client.id": "refunds", **transactional})
    billing = _consumer(servers, "billing", ["orders", "payments"])
    reports = _consumer(servers, "reports", ["orders"])
    threads = [
        threading.Thread(target=_sell, args=(shop, ended)),
        threading.Thread(target=_read, args=(billing, ended)),
        threading.Thread(target=_read, args=(reports, ended)),
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(10)
        refunds.init_transactions(LIMIT_S)
        refunds.begin_transaction()
        refunds.produce("orders", b"refund", partition=0)
        refunds.flush(LIMIT_S)
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        billing.close()
        reports.close()


def _consumer(servers: dict[str, str], group: str, topics: list[str]) -> Consumer:
    settings = {"group.id": group, "client.id": f"{group}-1", "auto.offset.reset": "earliest"}
    isolation = "read_committed" if group == "billing" else "read_uncommitted"
    consumer = Consumer(
        {**servers, **settings, "isolation.level": isolation, "auto.commit.interval.ms": 1000}
    )
    consumer.subscribe(topics)
    return consumer


def _sell(shop: Producer, ended: threading.Event) -> None:
    chosen = random.Random(1)
    while not ended.wait(chosen.uniform(0.05, 0.2)):
        for _ in range(chosen.randrange(20)):
            order = {"order": chosen.randrange(10_000), "total": round(chosen.uniform(3, 90), 2)}
            shop.produce("orders", json.dumps(order), key=f"table-{chosen.randrange(20)}")
        shop.poll(0)
    shop.flush(LIMIT_S)


def _read(consumer: Consumer, ended: threading.Event) -> None:
    while not ended.is_set():
        consumer.consume(100, 0.5)


if __name__ == "__main__":
    main()
