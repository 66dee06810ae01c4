"""`odradek users`, `acls`, `quotas` and `tokens`, on brokers with SASL, TLS and ACLs."""

import io
import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from odradek.tools.app import app
from odradek.tools.client.failure import CommandError
from odradek.tools.client.tokens import _time
from odradek.tools.client.users import read_password
from tests.support.kafka_answers import BROKERS
from tests.support.lengths import by_length
from tests.support.secured_broker import PASSWORD, SecuredBroker, secured_broker
from tests.support.waiting import wait_for

Run = Callable[..., Result]
LIMIT_S = 20.0
REFUSED_WITHIN_S = 5.0


@pytest.fixture(scope="module", params=BROKERS)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredBroker]:
    with secured_broker(request.param, tmp_path_factory.mktemp("secured") / "broker") as broker:
        yield broker


@pytest.fixture
def on_secured(secured: SecuredBroker) -> Run:
    """Runs a command as admin, or with the client settings that are given."""

    def run_command(*words: str, stdin: str | None = None, config: Path | None = None) -> Result:
        file = config or secured.client_file("admin", PASSWORD)
        return CliRunner().invoke(app, [*words, "--config", str(file)], input=stdin)

    return run_command


def listed(run: Run, *words: str, config: Path | None = None) -> list[dict[str, object]]:
    done = run(*words, "--json", config=config)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def one_line(done: Result) -> str:
    assert done.exit_code == 1, done.stdout
    (line,) = done.stderr.splitlines()
    return line


# -- users ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", by_length([True], [False, True]))
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_an_added_user_logs_in(
    on_secured: Run, secured: SecuredBroker, mechanism: str, tls: bool
) -> None:
    added = on_secured("users", "add", "bo=b,", "--iterations", "5000", stdin="pä ss=,word\n")
    assert (added.exit_code, added.stdout) == (
        0,
        "bo=b, can log in by SCRAM-SHA-256, SCRAM-SHA-512\n",
    )
    wait_for(lambda: len(listed(on_secured, "users", "list", "bo=b,")), 2)
    file = secured.client_file("bo=b,", "pä ss=,word", mechanism, tls=tls)
    assert listed(on_secured, "tokens", "list", config=file) == []
    wrong = secured.client_file("bo=b,", "wrong", mechanism, tls=tls)
    line = one_line(on_secured("tokens", "list", config=wrong))
    assert "refuses user bo=b,: " in line
    assert "check the credentials" in line


def test_users_are_listed_and_deleted(on_secured: Run, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("first line\nsecond line\n")
    added = on_secured(
        "users", "add", "carol", "--mechanism", "SCRAM-SHA-512", "--password-file", str(password)
    )
    assert added.exit_code == 0, added.stderr
    expected = [{"user": "carol", "mechanism": "SCRAM-SHA-512", "iterations": 4096}]
    wait_for(
        lambda: [each for each in listed(on_secured, "users", "list") if each["user"] == "carol"],
        expected,
    )
    assert listed(on_secured, "users", "list", "carol") == expected
    assert expected[0] in listed(on_secured, "users", "list")
    assert "SCRAM-SHA-256" in one_line(
        on_secured("users", "delete", "carol", "--mechanism", "SCRAM-SHA-256")
    )
    assert on_secured("users", "delete", "carol").stdout == "deleted SCRAM-SHA-512 of carol\n"
    wait_for(lambda: "carol" in on_secured("users", "list").stdout, False)
    for words in (["list", "carol"], ["delete", "carol"]):
        assert "there is no user carol" in one_line(on_secured("users", *words))


def test_on_a_terminal_the_password_is_asked_for_twice_and_not_shown(
    on_secured: Run, secured: SecuredBroker
) -> None:
    terminal, end = pty.openpty()
    command = [str(Path(sys.executable).with_name("odradek")), "users", "add", "erin"]
    with subprocess.Popen(
        [*command, "-b", secured.plain_servers], stdin=end, stdout=subprocess.PIPE, stderr=end
    ) as asking:
        os.close(end)
        shown = b""
        for _ in range(2):
            while not shown.endswith(b": "):
                shown += os.read(terminal, 1000)
            os.write(terminal, b"secret of erin\n")
            shown += os.read(terminal, 1000)
        assert asking.wait(LIMIT_S) == 0
    os.close(terminal)
    assert b"secret" not in shown
    wait_for(lambda: len(listed(on_secured, "users", "list", "erin")), 2)


def test_a_user_who_could_not_log_in_is_refused_before_the_password_is_asked_for() -> None:
    done = CliRunner().invoke(app, ["users", "add", "Zoë", "-b", "localhost:1"], input="")
    assert "user 'Zoë' cannot log in: names are of ASCII characters, as in Kafka" in one_line(done)


def test_an_empty_password_is_refused(on_secured: Run, tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert "is empty" in one_line(on_secured("users", "add", "dave", stdin="\n"))
    assert missing in one_line(on_secured("users", "add", "dave", "--password-file", missing))


def test_a_password_that_is_not_utf8_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"\xff\n")
    # As Python opens it with the locale C.
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\n"), "utf-8", "surrogateescape")
    monkeypatch.setattr(sys, "stdin", stdin)
    for path in (file, None):
        with pytest.raises(CommandError, match="it is not UTF-8"):
            read_password("dave", path)


# -- access control entries ----------------------------------------------------------------------


def entry(
    principal: str, operation: str, resource: str, name: str, **others: str
) -> dict[str, str]:
    ordinary = {"permission": "allow", "pattern": "literal", "host": "*"}
    named = {"principal": principal, "operation": operation, "resource": resource, "name": name}
    return {**ordinary, **named, **others}


def check_entries(run: Run, expected: list[dict[str, str]], *words: str) -> None:
    """Compare the entries that are listed, in any order."""
    wait_for(lambda: by_text(listed(run, "acls", "list", *words)), by_text(expected))


def by_text(entries: Sequence[Mapping[str, object]]) -> list[str]:
    return sorted(json.dumps(each, sort_keys=True) for each in entries)


@pytest.fixture
def no_entries(on_secured: Run) -> None:
    done = on_secured("acls", "remove", "--all", "--execute")
    assert done.exit_code == 0, done.stderr
    check_entries(on_secured, [])


@pytest.mark.usefixtures("no_entries")
def test_a_producer_and_a_consumer_get_what_kafka_acls_gives_them(on_secured: Run) -> None:
    words = ["--producer", "--consumer", "--topic", "orders", "--group", "g"]
    words += ["--transactional-id", "tx", "--prefix", "--idempotent"]
    done = on_secured("acls", "add", "alice", *words)
    assert done.exit_code == 0, done.stderr
    expected = [
        *(
            entry("User:alice", operation, "topic", "orders", pattern="prefixed")
            for operation in ("write", "describe", "create", "read")
        ),
        *(
            entry("User:alice", operation, "transactional-id", "tx", pattern="prefixed")
            for operation in ("write", "describe")
        ),
        entry("User:alice", "read", "group", "g", pattern="prefixed"),
        entry("User:alice", "idempotent-write", "cluster", "kafka-cluster"),
    ]
    check_entries(on_secured, expected, "alice")
    check_entries(on_secured, expected[:4], "--topic", "orders.eu")
    removed = on_secured("acls", "remove", "alice", *words, "--execute")
    assert removed.stdout.startswith("removed 8 entries\n"), removed.stderr
    check_entries(on_secured, [])


@pytest.mark.usefixtures("no_entries")
def test_every_type_of_resource_and_operation_can_be_named(on_secured: Run) -> None:
    done = on_secured(
        *["acls", "add", "Group:ops", "--user", "alice", "--operation", "create-tokens"],
        *["--operation", "describe-tokens", "--host", "10.0.0.1", "--host", "::1", "--deny"],
    )
    assert done.exit_code == 0, done.stderr
    for resource, operation in (
        ("cluster", "cluster-action"),
        ("topic", "all"),
        ("group", "alter-configs"),
        ("transactional-id", "two-phase-commit"),
        ("delegation-token", "describe"),
    ):
        name = [] if resource == "cluster" else ["*"]
        words = ["acls", "add", "*", f"--{resource}", *name, "-o", operation]
        assert on_secured(*words).exit_code == 0
    denied = [
        entry("Group:ops", operation, "user", "User:alice", permission="deny", host=host)
        for operation in ("create-tokens", "describe-tokens")
        for host in ("10.0.0.1", "::1")
    ]
    allowed = [
        entry("User:*", "cluster-action", "cluster", "kafka-cluster"),
        entry("User:*", "all", "topic", "*"),
        entry("User:*", "alter-configs", "group", "*"),
        entry("User:*", "two-phase-commit", "transactional-id", "*"),
        entry("User:*", "describe", "delegation-token", "*"),
    ]
    check_entries(on_secured, [*denied, *allowed])


@pytest.mark.usefixtures("no_entries")
def test_entries_are_shown_before_they_are_removed(on_secured: Run) -> None:
    entries = [
        entry(f"User:{user}", operation, "topic", "orders", pattern=pattern)
        for user in ("alice", "bob")
        for pattern in ("literal", "prefixed")
        for operation in ("read", "write")
    ]
    for user in ("alice", "bob"):
        for prefix in ([], ["--prefix"]):
            words = ["acls", "add", user, "--topic", "orders", "-o", "read", "-o", "write", *prefix]
            assert on_secured(*words).exit_code == 0
    check_entries(on_secured, entries)
    words = ["acls", "remove", "--topic", "orders", "-o", "read"]
    shown = on_secured(*words)
    assert shown.stdout.startswith("2 entries would be removed; --execute removes them\n")
    check_entries(on_secured, entries)
    assert on_secured(*words, "--execute").stdout.startswith("removed 2 entries\n")
    literal_reads = {"operation": "read", "pattern": "literal"}
    left = [each for each in entries if not literal_reads.items() <= each.items()]
    check_entries(on_secured, left)
    assert on_secured("acls", "remove", "alice", "--execute").exit_code == 0
    check_entries(on_secured, [each for each in left if each["principal"] == "User:bob"])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["add", "alice", "-o", "read"], "name a resource"),
        (["add", "alice", "--topic", "t"], "give --operation"),
        (["add", "alice", "--group", "g", "-o", "write"], "a group has no operation write"),
        (["add", "alice", "--producer"], "--producer needs --topic"),
        (["add", "alice", "--consumer", "--topic", "t"], "--consumer needs --topic and --group"),
        (["add", "alice", "--producer", "--topic", "t", "-o", "read"], "drop --operation"),
        (["remove"], "--all"),
        (["remove", "alice", "--all"], "--all"),
    ],
)
def test_a_mistake_in_acls_is_one_line(words: list[str], text: str) -> None:
    done = CliRunner().invoke(app, ["acls", *words])
    assert text in one_line(done)


def test_who_may_not_do_it_is_told_so(on_secured: Run, secured: SecuredBroker) -> None:
    alice = secured.client_file("alice", "alice-secret")
    for words in (
        ["acls", "list"],
        ["acls", "add", "bob", "--topic", "t", "-o", "read"],
        ["users", "list", "bob"],  # Kafka answers a refusal for all users with nothing
        ["quotas", "list"],
        ["quotas", "set", "producer_byte_rate=1", "--user", "bob"],
    ):
        line = one_line(on_secured(*words, config=alice))
        assert "CLUSTER_AUTHORIZATION_FAILED" in line
        assert "--config FILE" in line
    own = json.loads(on_secured("tokens", "create", "--json", config=alice).stdout)
    assert own["owner"] == "User:alice"
    line = one_line(on_secured("tokens", "create", "--owner", "bob", config=alice))
    assert "DELEGATION_TOKEN_AUTHORIZATION_FAILED" in line


@pytest.mark.usefixtures("no_entries")
def test_entries_that_are_added_are_shown_although_others_are_refused(on_secured: Run) -> None:
    names = ["--topic", "", "--topic", "orders", "--group", ""]
    done = on_secured("acls", "add", "alice", *names, "-o", "read")
    assert done.exit_code == 1
    assert done.stdout.startswith("added 1 entry\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("odradek: allow read on topic : ")
    assert line.endswith("; 1 more failed")
    check_entries(on_secured, [entry("User:alice", "read", "topic", "orders")])


@pytest.mark.usefixtures("no_entries")
def test_a_topic_is_read_without_the_right_to_any_group(
    on_secured: Run, secured: SecuredBroker
) -> None:
    assert on_secured("topics", "create", "readable").exit_code == 0
    assert on_secured("produce", "readable", stdin="one\ntwo\n").exit_code == 0
    for words in (
        ["--topic", "readable", "-o", "read", "-o", "describe"],
        ["--group", "another", "-o", "read"],
    ):
        assert on_secured("acls", "add", "alice", *words).exit_code == 0
    alice = secured.client_file("alice", "alice-secret")

    def consume() -> str:
        return on_secured("consume", "readable", config=alice).output

    wait_for(consume, "one\ntwo\n")


# -- quotas --------------------------------------------------------------------------------------


def test_quotas_are_set_listed_and_removed(on_secured: Run) -> None:
    done = on_secured(
        *["quotas", "set", "producer_byte_rate=10000000", "request_percentage=50.5"],
        *["--user", "alice", "--default-client-id"],
    )
    assert done.exit_code == 0, done.stderr
    assert done.stdout == (
        "user alice, client-id <default>: producer_byte_rate=10000000, request_percentage=50.5\n"
    )
    assert on_secured("quotas", "set", "consumer_byte_rate=7", "--user", "alice").exit_code == 0
    done = on_secured("quotas", "set", "connection_creation_rate=3", "--default-ip")
    assert done.exit_code == 0, done.stderr

    def quotas(*words: str) -> dict[frozenset[tuple[str, str | None]], dict[str, float]]:
        found: Any = listed(on_secured, "quotas", "list", *words)
        return {frozenset(each["entity"].items()): each["quotas"] for each in found}

    alice = frozenset({("user", "alice")})
    both = alice | {("client-id", None)}
    of_both = {"producer_byte_rate": 10_000_000.0, "request_percentage": 50.5}
    of_ips = {frozenset({("ip", None)}): {"connection_creation_rate": 3.0}}
    wait_for(quotas, {both: of_both, alice: {"consumer_byte_rate": 7.0}, **of_ips})
    assert quotas("--user", "alice") == {both: of_both, alice: {"consumer_byte_rate": 7.0}}
    assert quotas("--default-ip") == of_ips
    shown = on_secured("quotas", "list").stdout.splitlines()
    assert ["ip", "<default>", "connection_creation_rate", "3"] in map(str.split, shown)

    words = ["quotas", "remove", "--user", "alice"]
    assert "has no request_percentage" in one_line(on_secured(*words, "request_percentage"))
    assert on_secured(*words).stdout == "user alice: removed consumer_byte_rate\n"
    wait_for(quotas, {both: of_both, **of_ips})
    assert "has no quota" in one_line(on_secured(*words))
    assert on_secured(*words, "--default-client-id", "request_percentage").exit_code == 0
    wait_for(lambda: quotas("--user", "alice"), {both: {"producer_byte_rate": 10_000_000.0}})
    assert on_secured(*words, "--default-client-id").exit_code == 0
    assert on_secured("quotas", "remove", "--default-ip").exit_code == 0
    wait_for(quotas, {})


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["set", "bytes=1", "--user", "alice"], "the key must be one of producer_byte_rate"),
        (["set", "producer_byte_rate=-1", "--user", "alice"], "more than 0"),
        (["set", "producer_byte_rate=nan", "--user", "alice"], "more than 0"),
    ],
)
def test_a_mistake_in_quotas_is_one_line(words: list[str], text: str) -> None:
    assert text in one_line(CliRunner().invoke(app, ["quotas", *words]))


def test_a_quota_belongs_to_somebody(on_secured: Run) -> None:
    for words in (["set", "producer_byte_rate=1"], ["remove"]):
        assert "whose quota?" in one_line(on_secured("quotas", *words))


# -- delegation tokens ---------------------------------------------------------------------------


def test_a_token_is_created_renewed_and_expired(on_secured: Run) -> None:
    created = json.loads(
        on_secured(
            *["tokens", "create", "--owner", "alice", "--renewer", "bob", "--renewer", "admin"],
            *["--max-lifetime", "7h", "--json"],
        ).stdout
    )
    token = created["token"]

    def tokens(owner: str, *words: str) -> list[Any]:
        return [
            each
            for each in listed(on_secured, "tokens", "list", "--owner", owner, *words)
            if each["token"] == token
        ]

    wait_for(lambda: len(tokens("alice")), 1)
    (found,) = tokens("alice")
    assert (found["owner"], found["requester"]) == ("User:alice", "User:admin")
    assert found["renewers"] == ["User:bob", "User:admin"]
    assert "hmac" not in found
    (with_secret,) = tokens("alice", "--secrets")
    assert with_secret["hmac"] == created["hmac"]
    assert created["hmac"] not in on_secured("tokens", "list").stdout
    assert tokens("nobody") == []

    renewed = on_secured("tokens", "renew", token, "--for", "2h")
    assert renewed.stdout.startswith(f"{token} expires at 20"), renewed.stderr
    assert on_secured("tokens", "expire", token, "--in", "1h").exit_code == 0
    assert on_secured("tokens", "expire", token).stdout == f"removed {token}\n"
    wait_for(lambda: len(tokens("alice")), 0)
    for act in ("renew", "expire"):
        assert "`odradek tokens list` shows them" in one_line(on_secured("tokens", act, token))
    for text in ("soon", "200000000000d"):
        assert "no time" in one_line(on_secured("tokens", "expire", token, "--in", text))


def test_a_time_that_no_calendar_has_is_shown_as_a_number() -> None:
    assert _time(1_795_422_600_000) == "2026-11-23T08:30:00Z"
    assert _time(2**63 - 1) == "9223372036854775807 ms since 1970"


# -- connections ---------------------------------------------------------------------------------


def test_what_is_wrong_with_the_connection_is_one_line(
    on_secured: Run, secured: SecuredBroker, tmp_path: Path
) -> None:
    settings = secured.client_file("admin", PASSWORD, tls=True).read_text()
    file = tmp_path / "client.properties"
    for old, new, text in (
        ("ssl.truststore", "#", "is not trusted"),
        ("sasl.mechanism=PLAIN", "sasl.mechanism=OAUTHBEARER", "cannot log in by OAUTHBEARER"),
        ("sasl.mechanism=PLAIN", "sasl.mechanism=GSSAPI", "cannot log in by GSSAPI"),
        ("required", 'required tokenauth="true"', "log in by a delegation token (tokenauth)"),
        (str(secured.authority_file), "missing.pem", "the TLS settings cannot be used"),
    ):
        file.write_text(settings.replace(old, new))
        assert text in one_line(on_secured("users", "list", config=file))


def faulty_files(secured: SecuredBroker, directory: Path) -> dict[str, Path]:
    """Settings with which a client cannot connect, by a part of what it is told."""
    admin = secured.client_file("admin", PASSWORD).read_text()
    over_tls = secured.client_file("admin", PASSWORD, tls=True).read_text()
    scram = over_tls.replace("=PLAIN", "=SCRAM-SHA-256").replace("PlainLogin", "ScramLogin")
    texts = {
        "wrong password of PLAIN": ("Invalid username", admin.replace(PASSWORD, "wrong")),
        "wrong password of SCRAM": ("invalid credentials", scram.replace(PASSWORD, "wrong")),
        "no login": ("must log in", admin.replace("SASL_PLAINTEXT", "PLAINTEXT")),
        "login where there is none": (
            "security.protocol",
            admin.replace(secured.sasl_servers, secured.plain_servers),
        ),
        "TLS to a plain listener": (
            "without TLS",
            over_tls.replace(secured.tls_servers, secured.sasl_servers),
        ),
        "plain to a TLS listener": (
            "speaks TLS",
            admin.replace(secured.sasl_servers, secured.tls_servers),
        ),
        "untrusted certificate": (
            "check ssl.ca.location",
            over_tls.replace("ssl.truststore", "#"),
        ),
    }
    files = {}
    for name, (said, text) in texts.items():
        files[said] = directory / f"{name}.properties"
        files[said].write_text(text)
    return files


@pytest.mark.parametrize("words", by_length(["users list"], ["topics list", "users list"]))
def test_a_connection_that_cannot_work_is_explained_at_once(
    on_secured: Run, secured: SecuredBroker, tmp_path: Path, words: str
) -> None:
    for said, file in faulty_files(secured, tmp_path).items():
        began = time.monotonic()
        assert said in one_line(on_secured(*words.split(), config=file))
        assert time.monotonic() - began < REFUSED_WITHIN_S, said


def test_the_doctor_explains_a_connection_that_cannot_work(
    on_secured: Run, secured: SecuredBroker, tmp_path: Path
) -> None:
    for said, file in faulty_files(secured, tmp_path).items():
        done = on_secured("doctor", "--json", config=file)
        (found,) = (each for each in json.loads(done.stdout) if each["health"] == "problem")
        assert said in f"{found['text']} {found['advice']}"
        assert done.exit_code == 1


@pytest.mark.parametrize(
    "words",
    [
        *("produce t", "consume t", "groups list"),
        *by_length(
            (),
            (
                *("configs describe topic t", "bench"),
                *("acls list", "quotas list", "tokens list", "transactions list"),
            ),
        ),
    ],
)
def test_each_command_says_that_a_login_is_refused(
    on_secured: Run, secured: SecuredBroker, words: str
) -> None:
    wrong = secured.client_file("alice", "wrong")
    began = time.monotonic()
    line = one_line(on_secured(*words.split(), stdin="a record\n", config=wrong))
    assert time.monotonic() - began < REFUSED_WITHIN_S
    assert "Invalid username" in line
    assert "the credentials in the file of --config" in line


def test_certificates_may_be_texts_in_the_file(
    on_secured: Run, secured: SecuredBroker, tmp_path: Path
) -> None:
    settings = secured.client_file("admin", PASSWORD, tls=True).read_text()
    lines = [line for line in settings.splitlines() if not line.startswith("ssl.")]
    text = secured.authority_file.read_text().replace("\n", "\\n")
    file = tmp_path / "client.properties"
    file.write_text("\n".join([*lines, f"ssl.truststore.certificates={text}"]))
    assert isinstance(listed(on_secured, "users", "list", config=file), list)


def test_the_next_bootstrap_server_is_asked_if_one_does_not_answer(secured: SecuredBroker) -> None:
    servers = f"127.0.0.1:1,{secured.plain_servers}"
    done = CliRunner().invoke(app, ["users", "list", "-b", servers])
    assert done.exit_code == 0, done.stderr


def test_without_an_authorizer_that_is_said_in_one_line(run: Run) -> None:
    for words in (["list"], ["remove", "alice"]):
        line = one_line(run("acls", *words))
        assert "SECURITY_DISABLED" in line
        assert "authorizer.class.name" in line


def test_tokens_need_a_client_that_is_authenticated(run: Run) -> None:
    for words in (["list"], ["create"], ["renew", "x"], ["expire", "x"]):
        line = one_line(run("tokens", *words))
        assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in line
        assert "SASL" in line
