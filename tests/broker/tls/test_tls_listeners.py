"""TLS listeners from outside: versions, certificates, large records, and clients that misbehave."""

import contextlib
import os
import random
import select
import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from odradek.broker.network.tls_handshakes import MAX_UNFINISHED
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_in_loop import LIMIT_SECONDS
from tests.support.bystander import PRODUCE_VERSION, Bystander, produce, produce_request
from tests.support.certificates import Authority
from tests.support.lengths import SEED, by_length
from tests.support.stored_batches import FETCH_VERSION, fetch_request, fetched
from tests.support.tls_broker import TLS_1_2, TLS_1_3, TlsBroker, tls_broker
from tests.support.topics import create_topic
from tests.support.wire import WireClient, request_frame

KIB, MIB = 1 << 10, 1 << 20
HALF_OPEN = by_length(300, 10_000)
CIPHER = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
HELLO_HEAD = bytes.fromhex("16030100c8010000c40303")
TLS_RECORDS = (20, 21, 22, 23)  # RFC 8446, 5.1
CUT_ANSWERS = 20
API_VERSIONS = ApiVersionsRequest(client_software_name="t", client_software_version="1")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsBroker]:
    listeners = {
        "SSL": {"ssl.client.auth": "requested"},
        "MUTUAL": {"ssl.client.auth": "required"},
        "NEW": {"ssl.enabled.protocols": "TLSv1.3"},
        "OLD": {"ssl.enabled.protocols": "TLSv1.2", "ssl.cipher.suites": CIPHER},
    }
    settings = {"message.max.bytes": str(4 * MIB)}
    with tls_broker(tmp_path_factory.mktemp("tls"), listeners, settings) as made:
        yield made


def asks(client: WireClient) -> bool:
    with client:
        return client.ask(API_VERSIONS, ApiVersionsResponse, 3).error_code == 0


def is_refused(broker: TlsBroker, listener: str, context: ssl.SSLContext) -> bool:
    """Whether the handshake fails; a client of TLS 1.3 learns of it with its first read."""
    try:
        return not asks(broker.client(listener, context))
    except (ssl.SSLError, ConnectionError):
        return True


def wait_for_log(broker: TlsBroker, position: int, words: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while words not in broker.log_since(position):
        assert time.monotonic() < deadline, broker.log_since(position)
        time.sleep(0.01)


def batch_of(size: int, seed: int) -> bytes:
    value = random.Random(seed).randbytes(size)
    return bytes(build_batch([Record(key=None, value=value, timestamp_ms=1_700_000_000_000)]))


# -- versions and certificates --------------------------------------------------------------------


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
@pytest.mark.slow
def test_large_records_come_back_as_they_were_sent(
    broker: TlsBroker, version: ssl.TLSVersion
) -> None:
    topic = f"large-{version.name}"
    create_topic(broker.process.bootstrap, topic)
    batches = [batch_of(size, size) for size in (1, 16 * KIB, 100 * KIB, MIB, 3 * MIB)]
    with broker.client("SSL", broker.context(version)) as client:
        for offset, batch in enumerate(batches):
            assert produce(client, topic, batch) == offset
        answer = client.ask(fetch_request(topic, 0, 0, 64 * MIB), FetchResponse, FETCH_VERSION)
        stored = bytes(fetched(answer))
    assert len(stored) == sum(map(len, batches))
    position = 0
    for batch in batches:  # offset and leader epoch are the broker's
        assert stored[position + 16 : position + len(batch)] == batch[16:]
        position += len(batch)


def test_requests_that_arrive_together_are_answered_in_order(broker: TlsBroker) -> None:
    with broker.client() as client:
        frames = [request_frame(API_VERSIONS, 3, number, "t") for number in range(2_000)]
        client.send(b"".join(frames))
        for number in range(2_000):
            assert int.from_bytes(client.read_frame()[:4]) == number


def test_what_was_sent_before_the_close_is_served(broker: TlsBroker) -> None:
    create_topic(broker.process.bootstrap, "last-words")
    request = produce_request("last-words", batch_of(300 * KIB, 1), acks=0)
    with broker.client() as client:
        # Bytes that the client has not read, like session tickets, would turn its close to a reset.
        client.ask(API_VERSIONS, ApiVersionsResponse, 3)
        client.send(client.frame_of(request, PRODUCE_VERSION))
    with WireClient(broker.process.port) as reader:
        wait = fetch_request("last-words", 0, 0, MIB, max_wait_ms=10_000)
        assert len(fetched(reader.ask(wait, FetchResponse, FETCH_VERSION))) > 300 * KIB


def test_a_listener_speaks_only_its_versions_and_suites(broker: TlsBroker) -> None:
    position = len(broker.process.log_text())
    assert is_refused(broker, "NEW", broker.context(TLS_1_2))
    assert is_refused(broker, "OLD", broker.context(TLS_1_3))
    wait_for_log(broker, position, "the client has no TLS version of ssl.enabled.protocols")
    with broker.client("OLD") as client:
        assert isinstance(client.socket, ssl.SSLSocket)
        assert client.socket.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
    others = broker.context(TLS_1_2)
    others.set_ciphers("ECDHE-ECDSA-AES256-GCM-SHA384")
    assert is_refused(broker, "OLD", others)
    wait_for_log(broker, position, "the client has none of the cipher suites")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_outdated_versions_and_weak_suites_are_not_spoken(broker: TlsBroker) -> None:
    for version in (ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1):
        context = ssl.create_default_context(cafile=str(broker.files.ca))
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        assert is_refused(broker, "SSL", context)
    context = broker.context(TLS_1_2)
    context.set_ciphers("ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    strong = broker.client("SSL", context)
    assert isinstance(strong.socket, ssl.SSLSocket)
    assert "ECDHE" in strong.socket.cipher()[0]
    strong.close()
    weak = "aNULL:eNULL:SHA1:kRSA:DHE:3DES:!ECDHE+SHA256:!ECDHE+SHA384:!ECDHE+AESGCM:@SECLEVEL=0"
    context.set_ciphers(weak)
    assert is_refused(broker, "SSL", context)


def test_a_client_that_trusts_another_authority_refuses_the_broker(broker: TlsBroker) -> None:
    other = broker.files.directory / "other-ca.pem"
    other.write_text(Authority("elsewhere").pem)
    position = len(broker.process.log_text())
    with pytest.raises(ssl.SSLCertVerificationError):
        broker.client("SSL", broker.context(ca=other))
    wait_for_log(broker, position, "the client does not trust the broker's certificate")


@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
def test_a_listener_that_requires_certificates_takes_valid_ones(
    broker: TlsBroker, version: ssl.TLSVersion
) -> None:
    files, position = broker.files, len(broker.process.log_text())
    assert asks(broker.client("MUTUAL", broker.context(version, certificate=files.client_pem)))
    assert is_refused(broker, "MUTUAL", broker.context(version))
    wait_for_log(broker, position, "the client sent no certificate")
    expired = files.write_pem("expired.pem", files.authority.sign("late", days=-1))
    assert is_refused(broker, "MUTUAL", broker.context(version, certificate=expired))
    wait_for_log(broker, position, "certificate has expired")
    stranger = files.write_pem("stranger.pem", Authority("elsewhere").sign("stranger"))
    for listener in ("MUTUAL", "SSL"):
        assert is_refused(broker, listener, broker.context(version, certificate=stranger))
    wait_for_log(broker, position, "unable to get local issuer certificate")


def test_a_client_without_tls_is_told_apart_in_the_log(broker: TlsBroker) -> None:
    position = len(broker.process.log_text())
    with WireClient(broker.ports["SSL"]) as client:
        client.send(client.frame_of(API_VERSIONS, 0))
        assert client.is_closed_by_peer()
    wait_for_log(broker, position, "that was a Kafka request: is the client's security.protocol")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        WireClient(broker.process.port, tls=broker.context())
    wait_for_log(broker, position, "that was a TLS hello: this listener is not TLS")


# -- clients that misbehave -----------------------------------------------------------------------


def test_a_consumer_that_does_not_read_costs_no_memory_and_gets_all_at_last(
    broker: TlsBroker,
) -> None:
    create_topic(broker.process.bootstrap, "stalled")
    count = 24
    with broker.client() as producer:
        for number in range(count):
            produce(producer, "stalled", batch_of(MIB, number))
    before = broker.process.memory_bytes()
    stalled = [broker.client() for _ in range(8)]
    for client in stalled:
        client.send(client.frame_of(fetch_request("stalled", 0, 0, 64 * MIB), FETCH_VERSION))
    for client in stalled:
        while not select_readable(client.socket):
            time.sleep(0.01)
    assert asks(broker.client())
    assert broker.process.memory_bytes() - before < 8 * MIB
    for client in stalled:
        size = len(fetched(client.read_answer(FetchResponse, FETCH_VERSION)))
        assert size > count * MIB
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize("version", [TLS_1_2, TLS_1_3])
def test_an_answer_that_is_cut_by_the_end_of_tls_leaves_no_byte_in_the_clear(
    broker: TlsBroker, version: ssl.TLSVersion
) -> None:
    topic = f"cut-{version.name}"
    create_topic(broker.process.bootstrap, topic)
    with broker.client() as producer:
        for number in range(8):
            produce(producer, topic, batch_of(MIB, number))
    fetch = fetch_request(topic, 0, 0, 64 * MIB)
    for _ in range(CUT_ANSWERS):  # the end comes at another place of the answer each time
        client = broker.client("SSL", broker.context(version))
        client.send(client.frame_of(fetch, FETCH_VERSION))
        assert isinstance(client.socket, ssl.SSLSocket)
        with contextlib.suppress(ssl.SSLError):  # it has not read the answer
            client.socket.setblocking(False)
            client.socket.unwrap()
        with socket.socket(fileno=client.socket.detach()) as beneath:
            beneath.settimeout(LIMIT_SECONDS)
            wire = bytearray()
            with contextlib.suppress(ConnectionError):
                while received := beneath.recv(MIB):
                    wire += received
        position = 0
        while position < len(wire):
            kind, high, low, *size = wire[position : position + 5]
            assert kind in TLS_RECORDS, f"no TLS record after {position} of {len(wire)} bytes"
            assert (high, low) == (3, 3)
            position += 5 + int.from_bytes(bytes(size))


def select_readable(sock: socket.socket) -> bool:
    return bool(select.select([sock], [], [], 0)[0])


def garbage(rng: random.Random) -> bytes:
    """Bytes in place of a handshake: noise, a cut hello, a lying length, a record of data."""
    kind = rng.randrange(5)
    noise = rng.randbytes(rng.randrange(1, 400))
    match kind:
        case 0:
            return noise
        case 1:
            return HELLO_HEAD + noise
        case 2:
            return b"\x16\x03\x01\xff\xff" + rng.randbytes(70_000)
        case 3:
            return b"\x17\x03\x03" + len(noise).to_bytes(2) + noise
    return b"\x16\x03\x03" + len(noise).to_bytes(2) + noise


@pytest.mark.slow
def test_garbage_costs_its_sender_the_connection_and_nobody_else(broker: TlsBroker) -> None:
    rng = random.Random(SEED)
    with Bystander(broker.process.port, "garbage"):
        for _ in range(by_length(200, 5_000)):
            with socket.create_connection(("127.0.0.1", broker.ports["SSL"])) as client:
                client.sendall(garbage(rng))
        for _ in range(by_length(20, 500)):  # after a true handshake
            # From an address of whose clients the broker has logged nothing: there is a limit.
            with WireClient(
                broker.ports["SSL"], tls=broker.context(), own_host="127.0.0.3"
            ) as honest:
                with socket.socket(fileno=os.dup(honest.socket.fileno())) as beneath:
                    beneath.sendall(garbage(rng) + b"\x17\x03\x03\xff\xff" + bytes(9))
                    with contextlib.suppress(OSError):  # the broker was quicker
                        beneath.shutdown(socket.SHUT_WR)
                assert is_ended(honest)
        wait_for_log(broker, 0, "broken TLS: ")
    assert asks(broker.client())


def is_ended(client: WireClient) -> bool:
    try:
        return client.is_closed_by_peer()
    except ssl.SSLError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", HELLO_HEAD])
def test_half_open_handshakes_leave_memory_and_honest_clients_alone(
    broker: TlsBroker, sent: bytes
) -> None:
    asks(broker.client())
    memory, files = broker.process.memory_bytes(), broker.process.open_files()
    half_open: list[socket.socket] = []
    with Bystander(broker.process.port, f"half-open-{len(sent)}"):
        try:
            for number in range(HALF_OPEN):
                client = socket.create_connection(("127.0.0.1", broker.ports["SSL"]))
                client.sendall(sent)
                half_open.append(client)
                if number % 50 == 49:
                    assert asks(broker.client())
                if number == HALF_OPEN // 2:
                    midway = broker.process.memory_bytes()
            assert broker.process.memory_bytes() - memory < 64 * MIB
            if HALF_OPEN > 4 * MAX_UNFINISHED:  # then they have replaced each other since
                assert broker.process.memory_bytes() - midway < 8 * MIB
            assert broker.process.open_files() - files < MAX_UNFINISHED + 10
        finally:
            for client in half_open:
                client.close()
    deadline = time.monotonic() + LIMIT_SECONDS
    while broker.process.open_files() > files + 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
