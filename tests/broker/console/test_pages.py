"""The console's pages in a browser: each view, each action, and what axe-core finds."""

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer

from odradek.broker.console.console import MAX_STREAMS_OF_ONE
from odradek.broker.testing.broker import Broker
from tests.support.browser import DESKTOP, PHONE, Browser, why_no_browser
from tests.support.console_client import ConsoleClient
from tests.support.lengths import by_length

from .conftest import Allow

_WHY_NOT = why_no_browser()
# A page that a phone can show is rarely wrong on a desktop.
SIZES = by_length([PHONE], [PHONE, DESKTOP])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_WHY_NOT is not None, reason=str(_WHY_NOT)),
]

LIMIT_SECONDS = 100.0
LONG = "a-name-of-249-characters." + "x" * 224
LISTS = (
    "overview",
    "topics",
    "groups",
    "transactions",
    "connections",
    "security/acls",
    "security/users",
    "security/quotas",
    "security/tokens",
    "maintenance",
    "log",
)
OF_A_TOPIC = ("", "/messages", "/messages/0/0", "/config", "/segments", "/producers")
OF_A_GROUP = ("", "/members")
FULL = (
    *LISTS,
    *(f"topics/orders{part}" for part in OF_A_TOPIC),
    *(f"groups/billing{part}" for part in OF_A_GROUP),
    f"topics/{LONG}",
    "topics?search=nothing-has-this",
    "no-such-view",
)


@pytest.fixture
def browser(broker: Broker, browser_here: Browser) -> Iterator[Browser]:
    """A browser at the empty broker. No script of a page may have failed at the end of a test."""
    browser_here.base = broker.console_url
    browser_here.look()
    browser_here.problems()
    yield browser_here
    assert browser_here.problems() == []


@pytest.fixture
def held_back(broker: Broker) -> Iterator[Broker]:
    """A broker whose group `billing` waits in `orders` for the end of a transaction."""
    broker.create_topic("orders", partitions=2)
    broker.create_topic(LONG)
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    plain = Producer(servers)
    open_one = Producer({**servers, "transactional.id": "refunds"})
    open_one.init_transactions(LIMIT_SECONDS)
    open_one.begin_transaction()
    for number in range(3):
        produce(plain, {"order": number})
    open_one.produce("orders", b"in a transaction", partition=0)
    assert open_one.flush(LIMIT_SECONDS) == 0
    for number in range(3, 7):
        produce(plain, {"order": number})
    consumer = Consumer(
        {**servers, "group.id": "billing", "client.id": "till", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(3, LIMIT_SECONDS)) == 3
    consumer.commit(asynchronous=False)
    yield broker
    consumer.close()


def login_of(broker: Broker) -> dict[str, str]:
    """The header with which `admin` logs in to the console."""
    settings = broker.client_settings("confluent-kafka")
    return basic(settings["sasl.username"], settings["sasl.password"])


def basic(user: str, password: str) -> dict[str, str]:
    login = f"{user}:{password}"
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def produce(producer: Producer, value: object, topic: str = "orders") -> None:
    headers = [("source", b"web")]
    producer.produce(topic, json.dumps(value), key="frida", partition=0, headers=headers)
    assert producer.flush(LIMIT_SECONDS) == 0


# -- all views -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_an_empty_broker_has_all_views(browser: Browser, size: tuple[int, int]) -> None:
    browser.look(size)
    for place in LISTS:
        browser.open(place)
        assert not browser.is_there(".failure"), (place, browser.text)
        assert not browser.is_wider_than_the_window(), place
    browser.open("topics")
    browser.see("There are no topics yet.", "Create one")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_full_broker_has_all_views(
    browser: Browser, held_back: Broker, size: tuple[int, int]
) -> None:
    browser.look(size)
    for place in FULL:
        browser.open(place)
        assert not browser.is_there(".failure"), (place, browser.text)
        assert not browser.is_wider_than_the_window(), place


@pytest.mark.parametrize("scheme", by_length(["light"], ["light", "dark"]))
def test_axe_finds_nothing_serious(browser: Browser, held_back: Broker, scheme: str) -> None:
    browser.look(DESKTOP, scheme)
    findings = []
    for place in FULL:
        browser.open(place)
        findings += [(place, finding) for finding in browser.findings_of_axe()]
    for place, button in [
        ("topics", "Create a topic"),
        ("topics/orders", "Delete"),
        ("topics/orders/messages", "Produce"),
        ("groups/billing", "Reset offsets"),
    ]:
        browser.open(place)
        browser.click(button)
        findings += [(button, finding) for finding in browser.findings_of_axe()]
    assert findings == []


def test_the_theme_is_the_systems_or_the_chosen_one(browser: Browser) -> None:
    script = "return getComputedStyle(document.body).colorScheme"
    browser.open("log")
    browser.choose("Theme", "dark")
    assert browser.driver.execute_script(script) == "dark"
    browser.open("log")
    assert browser.driver.execute_script(script) == "dark"
    browser.choose("Theme", "as the system")
    assert browser.driver.execute_script(script) == "light dark"


def test_what_does_not_exist_is_said(browser: Browser) -> None:
    browser.open("topics/none")
    browser.see("UNKNOWN_TOPIC_OR_PARTITION", "It may have been deleted", "Try again")
    browser.open("groups/none")
    browser.see("GROUP_ID_NOT_FOUND", "It may have been deleted")


def test_a_page_that_gets_no_event_stream_asks_now_and_then(
    browser: Browser, broker: Broker, console: ConsoleClient
) -> None:
    streams = [HTTPConnection("127.0.0.1", console.port) for _ in range(MAX_STREAMS_OF_ONE)]
    try:
        for stream in streams:
            stream.request("GET", "/api/v1/topics", headers={"Accept": "text/event-stream"})
            stream.getresponse()
        browser.open("topics")
        browser.see("There are no topics yet.", "Too many pages are open")
        broker.create_topic("orders")
        browser.see("orders")
    finally:
        for stream in streams:
            stream.close()
    browser.see("Live")


def test_the_page_works_by_keyboard(browser: Browser) -> None:
    browser.open("topics")
    browser.press("\ue004")  # tab
    assert browser.focus == "Skip to the page"
    browser.click("Create a topic")
    browser.until(lambda: browser.is_there("dialog"))
    browser.press("\ue00c")  # escape
    browser.until(lambda: not browser.is_there("dialog"))
    assert browser.focus == "Create a topic"


# -- topics ----------------------------------------------------------------------------------------


def test_a_topic_is_checked_and_then_created(browser: Browser, console: ConsoleClient) -> None:
    browser.open("topics")
    browser.click("Create a topic")
    browser.fill("Name", "orders")
    browser.fill("Partitions", "3")
    browser.click("Add a key")
    browser.fill("Key", "retention.ms")
    browser.fill("Value", "soon")
    browser.click("Check")
    browser.see("INVALID_CONFIG")
    browser.fill("Value", "3600000")
    browser.click("Check")
    browser.see("It has not made it yet", "3600000")
    assert console.get("/topics")["total"] == 0
    browser.click("Create")
    browser.see("Topic orders was created.", "3 partitions")
    assert browser.place == "#/topics/orders"
    [topic] = console.get("/topics")["topics"]
    assert (topic["name"], topic["partitions"]) == ("orders", 3)


def test_the_search_and_the_order_stand_in_the_address(browser: Browser, broker: Broker) -> None:
    for name in ("orders", "payments", "returned-orders"):
        broker.create_topic(name)
    browser.open("topics")
    browser.fill("Search in names", "ORDER")
    browser.until(lambda: "payments" not in browser.text)
    browser.click("Topic")
    browser.until(lambda: "descending" in browser.place)
    browser.open(browser.place.removeprefix("#/"))
    names = [link.text for link in browser.driver.find_elements("css selector", "tbody th a")]
    assert names == ["returned-orders", "orders"]


def test_a_topic_is_deleted_by_its_name(
    browser: Browser, broker: Broker, console: ConsoleClient
) -> None:
    broker.create_topic("orders")
    browser.open("topics/orders")
    browser.click("Delete")
    delete = "dialog button[type=submit]"
    browser.fill("Type its name to go on", "order")
    assert not browser.driver.find_element("css selector", delete).is_enabled()
    browser.fill("Type its name to go on", "orders")
    browser.click("Delete")
    browser.see("Topic orders was deleted.", "There are no topics yet.")
    assert console.get("/topics")["total"] == 0


def test_partitions_are_added(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    browser.open("topics/orders")
    browser.click("Add partitions")
    browser.fill("Partitions then", "4")
    browser.click("Add")
    browser.see("orders has 4 partitions.", "4 partitions")


def test_records_are_deleted_up_to_an_offset(browser: Browser, held_back: Broker) -> None:
    browser.open("topics/orders")
    browser.click("Delete records of partition 0")
    browser.fill("Keep from offset", "2")
    browser.click("Delete")
    browser.see("Partition 0 begins at offset 2 now.")


def test_a_setting_is_edited_where_it_stands(
    browser: Browser, broker: Broker, console: ConsoleClient
) -> None:
    def retention() -> tuple[str, str]:
        configs = console.get("/topics/orders/config")["configs"]
        return next((c["value"], c["source"]) for c in configs if c["name"] == "retention.ms")

    broker.create_topic("orders")
    browser.open("topics/orders/config?search=retention.ms")
    browser.click("Edit retention.ms")
    browser.fill("retention.ms", "never")
    browser.click("Save")
    browser.see("INVALID_CONFIG")
    browser.fill("retention.ms", "3600000")
    browser.click("Save")
    browser.see("retention.ms is 3600000 now.", "dynamic topic config")
    assert retention() == ("3600000", "DYNAMIC_TOPIC_CONFIG")
    browser.click("Edit retention.ms")
    browser.click("Use the broker's")
    browser.see("retention.ms is the broker's again.")
    assert retention()[1] == "DEFAULT_CONFIG"


def test_segments_say_why_they_stay(browser: Browser, held_back: Broker) -> None:
    browser.open("topics/orders/segments?partition=0")
    browser.see("Why it is still here", "0 to 7", "active segment")


# -- messages --------------------------------------------------------------------------------------


def test_a_record_is_produced_and_sent_again(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    browser.open("topics/orders/messages")
    browser.see("There are no records here.")
    browser.click("Produce")
    browser.check("No key")
    browser.fill("Key", "frida")
    browser.fill("Value", '{"order": 12345678901234567890}')
    browser.click("Add a header")
    browser.fill("Header", "source")
    browser.fill("Its value", "web")
    browser.click("Produce")
    browser.see("Written to partition 0 at offset 0.", '"order": 12345678901234567890', "source")
    assert browser.place == "#/topics/orders/messages/0/0"
    browser.click("Send again")
    browser.click("Produce")
    browser.see("Written to partition 0 at offset 1.")
    first, second = broker.records("orders")
    assert first.key == second.key == b"frida"
    assert first.value == second.value == b'{"order": 12345678901234567890}'
    assert list(first.headers) == list(second.headers)


def test_a_record_is_sent_again_byte_for_byte(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    headers = [("trace", b"\xff\0"), ("text", b"web"), ("none", None)]
    broker.produce("orders", b"\xef\xbb\xbfvalue", key=b"\xff", headers=headers)
    browser.open("topics/orders/messages/0/0")
    browser.click("Send again")
    browser.click("Produce")
    browser.see("Written to partition 0 at offset 1.")
    first, second = broker.records("orders")
    assert (second.key, second.value) == (first.key, first.value)
    assert list(second.headers) == headers


def test_a_tombstone_is_produced(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    browser.open("topics/orders/messages")
    browser.click("Produce")
    browser.check("No key")
    browser.fill("Key", "frida")
    browser.check("Tombstone")
    browser.click("Produce")
    browser.see("it is a tombstone")
    [record] = broker.records("orders")
    assert (record.key, record.value) == (b"frida", None)


def test_records_are_filtered_and_the_address_keeps_it(browser: Browser, held_back: Broker) -> None:
    browser.open("topics/orders/messages")
    browser.see("3 records", "5 records at the end are held back")
    browser.click("Show all")
    browser.see("8 records", "not committed yet")
    browser.fill("JSON path", "$.order=5")
    browser.click("Search")
    browser.see("1 record, searched")
    browser.open(browser.place.removeprefix("#/"))
    browser.see("1 record, searched", '{"order": 5}')
    browser.fill("Key has", "typed")
    browser.choose("Position", "oldest first")
    browser.until(lambda: "position=oldest" in browser.place)
    browser.click("Search")
    browser.see("No record matches.")
    browser.open("topics/orders/messages?position=time&timestampMs=abc")
    browser.see("Which records")
    browser.open("topics/orders/messages?header=source%3Dshop")
    browser.see("No record matches.", "Everything was searched.")


def test_what_is_typed_stays_while_records_are_written(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    produce(producer, {"order": 0})
    browser.open("topics/orders/messages")
    browser.see("1 record")
    browser.fill("Value has", "order")

    def head() -> str:  # has the topic's size: it is drawn again when the topic has grown
        return str(browser.driver.find_element("css selector", ".head").text)

    for number in range(1, 4):
        before = head()
        produce(producer, {"order": number})
        browser.until(lambda before=before: head() != before)
    browser.click("Search")
    browser.until(lambda: "value=order" in browser.place)
    browser.see("4 records")


def test_a_search_stops_and_goes_on(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(40):
        producer.produce("orders", b"x" * 900_000)
    assert producer.flush(LIMIT_SECONDS) == 0
    browser.open("topics/orders/messages")
    browser.slow_down(latency_ms=500)
    browser.fill("Value has", "nothing has this")
    browser.click("Search")
    browser.until(lambda: browser.place.endswith("this") or "value=" in browser.place)
    browser.click("Stop")
    browser.see("No record matches.", "Search on, or change the filters.")
    assert "searched 40 of 40" not in browser.text
    browser.slow_down(latency_ms=0)
    browser.click("Search on")
    browser.see("searched 40 of 40", "Everything was searched.")


def test_what_was_found_is_exported(browser: Browser, held_back: Broker) -> None:
    browser.open("topics/orders/messages?isolation=read_uncommitted&jsonPath=$.order=5")
    address = browser.address_of("Export as JSON lines")
    with urlopen(address, timeout=LIMIT_SECONDS) as response:
        [record] = [json.loads(line) for line in response]
    assert (record["key"], record["value"]) == ("frida", '{"order": 5}')


def test_a_link_to_a_record_is_copied(browser: Browser, held_back: Broker) -> None:
    browser.open("topics/orders/messages/0/1")
    browser.click("Copy the link")
    browser.see("Copied.")
    assert browser.clipboard == f"{browser.base}/{browser.place}"
    browser.click("Copy as JSON")
    browser.until(lambda: browser.clipboard.startswith("{"))
    assert json.loads(browser.clipboard)["offset"] == 1


def test_new_records_appear_while_they_are_written(browser: Browser, broker: Broker) -> None:
    broker.create_topic("orders")
    browser.open("topics/orders/messages")
    browser.check("Live")
    browser.see("Waiting for new records.", "Live")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    browser.until(lambda: produce(producer, {"order": 7}) or '{"order": 7}' in browser.text)


def test_a_live_view_shows_what_was_written_while_it_had_no_connection(
    browser: Browser, broker: Broker
) -> None:
    broker.create_topic("orders")
    hide = (
        "Object.defineProperty(document, 'hidden', {configurable: true, value: arguments[0]});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    browser.open("topics/orders/messages?live=true")
    browser.see("Waiting for new records.", "Live")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    browser.until(lambda: produce(producer, {"order": 1}) or '{"order": 1}' in browser.text)
    browser.driver.execute_script(hide, True)
    browser.see("Paused")
    produce(producer, {"order": 2})
    browser.driver.execute_script(hide, False)
    browser.see('{"order": 2}')
    shown = browser.driver.find_elements("css selector", "table[aria-label=Records] tbody tr")
    produced = len(broker.records("orders"))
    assert len(shown) <= produced  # none of them twice
    places = [row.find_element("css selector", "th").text for row in shown]
    assert len(set(places)) == len(places)


# -- groups and transactions -----------------------------------------------------------------------


def test_who_sees_why_a_consumer_does_not_move_can_mend_it(
    browser: Browser, held_back: Broker, console: ConsoleClient
) -> None:
    browser.open("groups")
    browser.see("1 partition held back")
    browser.click("billing")
    browser.see("1 partition cannot move on.", "refunds")
    browser.click("See its producers, and abort")
    browser.see("5 records are held back.")
    [producer] = [
        row
        for row in console.get("/topics/orders/partitions/0/producers")["producers"]
        if row["transactionalId"] == "refunds"
    ]
    browser.click(f"Abort the transaction of producer {producer['producerId']}")
    browser.click("Abort the transaction")
    browser.see("The transaction was aborted.")
    browser.until(lambda: "held back" not in browser.text)
    browser.open("groups/billing")
    # The page may show for a moment what it has shown before.
    browser.until(lambda: "billing" in browser.text and "cannot move on" not in browser.text)


def test_open_transactions_say_what_they_hold_back(browser: Browser, held_back: Broker) -> None:
    browser.open("transactions?openOnly=true")
    browser.see("refunds", "ongoing", "orders 0 since offset 3", "5 records held back")
    [abort] = [name for name in browser.buttons() if name.startswith("Abort")]
    browser.click(abort)
    browser.click("Abort the transaction")
    browser.see("The transaction was aborted.", "There are no transactions.")


def test_offsets_are_reset_after_a_preview(
    browser: Browser, broker: Broker, console: ConsoleClient
) -> None:
    broker.create_topic("orders")
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer(servers)
    for number in range(5):
        produce(producer, {"order": number})
    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert len(consumer.consume(5, LIMIT_SECONDS)) == 5
    consumer.commit(asynchronous=False)
    consumer.close()
    browser.open("groups/billing")
    browser.click("Reset offsets")
    browser.choose("Go to", "an offset")
    browser.fill("Offset", "2")
    browser.click("Preview")
    browser.see("Set these offsets?")
    assert console.get("/groups/billing")["offsets"][0]["committed"] == 5
    browser.click("Set the offsets")
    browser.see("The offsets of billing were set.")
    assert console.get("/groups/billing")["offsets"][0]["committed"] == 2
    browser.click("Delete")
    browser.fill("Type its name to go on", "billing")
    browser.click("Delete")
    browser.see("Group billing was deleted.", "There are no groups yet.")


# -- who may ---------------------------------------------------------------------------------------


def test_a_console_that_is_read_only_has_nothing_that_changes(
    browser_here: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = {"odradek.console.read.only": "true"}
    with Broker(tmp_path_factory.mktemp("read-only"), settings, console=True) as broker:
        browser_here.base = broker.console_url
        broker.create_topic("orders")
        shown: set[str] = set()
        for place in (*LISTS, *(f"topics/orders{part}" for part in OF_A_TOPIC)):
            browser_here.open(place)
            shown |= browser_here.buttons()
        browser_here.leave()
    browser_here.problems()
    words = ("Create", "Delete", "Add ", "Edit", "Produce", "Abort", "Set ", "Reset", "Send")
    assert [name for name in shown if name.startswith(words)] == []


def test_who_may_only_write_to_a_topic_can_only_produce(
    browser_here: Browser, secure_broker: Broker, allow: Allow
) -> None:
    for operation in ("READ", "WRITE", "DESCRIBE_CONFIGS"):
        allow(operation, "TOPIC", "orders")
    browser_here.base = secure_broker.console_url
    browser_here.log_in(basic("nobody", "nobody's"))
    browser_here.problems()
    for place in ("", "/config", "/producers"):
        browser_here.open(f"topics/orders{place}")
        words = ("Add ", "Delete", "Edit", "Abort")
        assert [name for name in browser_here.buttons() if name.startswith(words)] == []
    browser_here.open("topics/orders/messages")
    browser_here.click("Produce")
    browser_here.fill("Value", "by nobody")
    browser_here.click("Produce")
    browser_here.see("Written to partition 0 at offset 0.", "Send again", "by nobody")
    browser_here.leave()
    browser_here.log_in({})
    assert browser_here.problems() == []


def test_users_rules_and_quotas_are_set_on_a_secured_broker(
    browser_here: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Broker(tmp_path_factory.mktemp("secured"), secure=True, console=True) as broker:
        browser_here.base = broker.console_url
        browser_here.log_in(login_of(broker))
        browser_here.open("security/acls")
        browser_here.click("Add a rule")
        browser_here.fill("Principal", "User:frida")
        browser_here.fill("Its name", "orders")
        browser_here.click("Add")
        browser_here.see("The rule was added.", "User:frida")
        browser_here.open("security/users")
        browser_here.click("Set a password")
        browser_here.fill("User", "frida")
        browser_here.fill("Password", "a long password")
        browser_here.click("Set")
        browser_here.see("frida can log in by SCRAM-SHA-512.")
        browser_here.open("security/quotas")
        browser_here.click("Set a quota")
        browser_here.fill("User", "frida")
        browser_here.fill("Value", "1024")
        browser_here.click("Set")
        browser_here.see("producer_byte_rate is set.", "user frida")
        assert browser_here.findings_of_axe() == []
        browser_here.click("Remove producer_byte_rate of user frida")
        browser_here.click("Remove")
        browser_here.see("The quota was removed.", "There are no quotas.")
        browser_here.open("security/users")
        browser_here.click("Delete the SCRAM-SHA-512 password of frida")
        browser_here.fill("Type its name to go on", "frida")
        browser_here.click("Delete")
        browser_here.see("frida cannot log in by SCRAM-SHA-512 any more.")
        browser_here.open("security/acls?search=frida")
        [delete] = [name for name in browser_here.buttons() if "User:frida" in name]
        browser_here.click(delete)
        browser_here.click("Delete")
        browser_here.see("The rule was deleted.", "No rule is like that.")
        browser_here.leave()
        browser_here.log_in({})
    assert browser_here.problems() == []
