"""Who may ask the console, and for what."""

import http.client
import json
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.console.views import ENDPOINTS
from odradek.broker.testing.broker import Broker
from tests.support.console_client import ConsoleClient

from .conftest import console_of

pytestmark = pytest.mark.slow

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# The lists of these are empty for somebody who may not see what is in them.
FILTERED = {"/topics", "/groups", "/transactions", "/tokens"}


def ask(
    console: ConsoleClient, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, bytes, Any]:
    """Send a request with these headers and no others."""
    connection = http.client.HTTPConnection("127.0.0.1", console.port, timeout=60)
    try:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, None if body is None else json.dumps(body), given)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/", "/api/v1/me", "/api/v1/openapi.json", "/api/v1/overview"])
def test_a_name_that_a_stranger_may_own_gets_nothing(console: ConsoleClient, path: str) -> None:
    assert ask(console, path, Host="evil.example")[0] == 421
    assert ask(console, path, Host=f"localhost:{console.port}")[0] == 200


def test_a_page_of_another_site_gets_nothing(console: ConsoleClient) -> None:
    host = f"localhost:{console.port}"
    assert ask(console, "/api/v1/me", Host=host, Origin="http://evil.example")[0] == 403
    assert ask(console, "/api/v1/me", Host=host, Origin=f"http://{host}")[0] == 200


def test_a_further_name_is_served_if_it_is_configured(tmp_path: Path) -> None:
    with Broker(tmp_path, {"odradek.http.hosts": "kafka.example"}, console=True) as broker:
        console = console_of(broker)
        assert ask(console, "/api/v1/me", Host="kafka.example")[0] == 200
        assert ask(console, "/api/v1/me", Host="other.example")[0] == 421


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_a_change_needs_the_token_of_the_console(console: ConsoleClient, token: str | None) -> None:
    change = {"entity": [{"type": "user", "name": "a"}], "set": {"producer_byte_rate": 1}}
    headers = {} if token is None else {"X_Odradek_Token": token}
    status, body, _ = ask(console, "/api/v1/quotas", "PUT", change, **headers)
    assert (status, json.loads(body)["error"]) == (403, "FORBIDDEN")
    assert console.get("/quotas")["quotas"] == []
    console.put("/quotas", change)
    assert len(console.get("/quotas")["quotas"]) == 1


def test_a_console_that_is_read_only_changes_nothing(tmp_path: Path) -> None:
    settings = {"odradek.console.read.only": "true"}
    with Broker(tmp_path, settings, console=True) as broker:
        console = console_of(broker)
        assert console.get("/me")["readOnly"]
        changes = [each for each in ENDPOINTS if each.changes]
        assert changes
        for each in changes:
            path = each.template.replace("{partition}", "0").replace("{", "").replace("}", "")
            answer = console.ask(each.method, path, {})
            assert answer.error == (403, "FORBIDDEN"), path
            assert "odradek.console.read.only" in answer.body["message"]
        assert console.get("/overview")["nodeId"] == 0


def test_a_login_is_required_if_clients_log_in(secure_broker: Broker) -> None:
    stranger = console_of(secure_broker)
    for path in ("/", "/api/v1/me", "/api/v1/openapi.json", "/api/v1/log"):
        status, body, headers = ask(stranger, path)
        assert status == 401, path
        assert headers["WWW-Authenticate"].startswith("Basic realm=")
        assert b"token" not in body
    assert console_of(secure_broker, "nobody", "wrong").ask("GET", "/me").status == 401


def test_a_user_of_scram_logs_in(nobody: ConsoleClient) -> None:
    me = nobody.get("/me")
    assert (me["principal"], me["loginRequired"]) == ("User:nobody", True)


def test_a_user_of_plain_logs_in(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_ann="s:ecret";',
        "connection.failed.authentication.delay.ms": "0",
    }
    with Broker(tmp_path, settings, console=True) as broker:
        assert console_of(broker, "ann", "s:ecret").get("/me")["principal"] == "User:ann"
        assert console_of(broker, "ann", "wrong").ask("GET", "/me").status == 401


def test_who_may_nothing_sees_nothing(secure_broker: Broker, nobody: ConsoleClient) -> None:
    secure_broker.create_topic("secret")
    views = [
        each.template for each in ENDPOINTS if each.method == "GET" and "{" not in each.template
    ]
    assert {"/connections", "/acls", "/users", "/quotas", "/maintenance", "/log"} < set(views)
    for path in views:
        answer = nobody.ask("GET", path)
        if path in FILTERED:
            assert answer.status == 403 or answer.body["total"] == 0, path
        else:
            assert answer.error == (403, "CLUSTER_AUTHORIZATION_FAILED"), path
        assert "secret" not in json.dumps(answer.body)


def test_who_may_nothing_changes_nothing(nobody: ConsoleClient, admin: ConsoleClient) -> None:
    acl = {"principal": "User:nobody", "operation": "ALL", "permission": "ALLOW"}
    acl |= {"resourceType": "TOPIC", "resourceName": "secret"}
    user = {"name": "new", "password": "p", "mechanism": "SCRAM-SHA-256"}
    quota = {"entity": [{"type": "user", "name": "nobody"}], "set": {"producer_byte_rate": 1e9}}
    for method, path, body in (
        ("POST", "/acls", {"acl": acl}),
        ("DELETE", "/acls", {"acl": acl}),
        ("POST", "/users", user),
        ("DELETE", "/users", {"name": "nobody", "mechanism": "SCRAM-SHA-256"}),
        ("PUT", "/quotas", quota),
    ):
        refused = nobody.ask(method, path, body).error
        assert refused == (403, "CLUSTER_AUTHORIZATION_FAILED"), (method, path)
    assert admin.get("/acls")["acls"] == []
    assert [each["name"] for each in admin.get("/users")["users"]] == ["admin", "nobody"]
    assert admin.get("/quotas")["quotas"] == []
