"""Requests that the registry does not take, and what it says to them."""

import json

import pytest

from odradek.broker.http.routes import MAX_BODY_BYTES
from odradek.broker.testing.broker import Broker
from tests.support.registry_client import JSON, RegistryClient

VERSIONS = "/subjects/s/versions"
RULE = {"name": "a", "type": "t", "mode": "WRITE"}
SURROGATE = '{"type":"fixed","name":"F","size":1,"doc":"\\ud800"}'


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/associations/resources/x", 404),
        ("GET", "/schemas/ids/x", 404),
        ("GET", "/subjects?limit=x", 404),
        ("GET", "/schemas/ids/99999999999", 404),
        ("GET", "/schemas/ids/1_0", 404),
        ("GET", "/schemas/ids/%201", 404),
        ("GET", "/schemas/ids/%D9%A1", 404),
        ("PUT", VERSIONS, 405),
        ("POST", "/config", 405),
        ("DELETE", "/contexts/.", 405),
        ("DELETE", "/contexts/:.:", 405),
    ],
)
def test_what_is_not_there_is_refused_as_json(
    registry: RegistryClient, method: str, path: str, status: int
) -> None:
    phrase = {404: "Not Found", 405: "Method Not Allowed"}[status]
    body = {} if method != "GET" else None
    assert registry.refused(method, path, body) == (status, status, f"HTTP {status} {phrase}")


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused(registry: RegistryClient, content_type: str) -> None:
    reply = registry.ask("POST", VERSIONS, b"{}", Content_Type=content_type)
    assert (reply.status, reply.body["error_code"]) == (415, 415)


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", "application/octet-stream"]
)
def test_the_content_types_of_clients_are_taken(
    registry: RegistryClient, content_type: str
) -> None:
    body = b'{"schema": "\\"int\\""}'
    assert registry.ask("POST", VERSIONS, body, Content_Type=content_type).status == 200


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("*/*", JSON),
        ("application/json", "application/json"),
        (f"{JSON}, application/vnd.schemaregistry+json, application/json", JSON),
        ("text/html, application/json;q=0.9", "application/json"),
        ("application/json;q=0.5, application/vnd.schemaregistry+json", JSON.replace(".v1", "")),
    ],
)
def test_the_content_type_of_a_reply_is_one_that_the_client_takes(
    registry: RegistryClient, accept: str, content_type: str
) -> None:
    assert registry.ask("GET", "/subjects", Accept=accept).content_type == content_type


def test_a_client_that_takes_no_json_is_refused(registry: RegistryClient) -> None:
    reply = registry.ask("GET", "/subjects", Accept="text/html")
    assert (reply.status, reply.body["message"]) == (406, "HTTP 406 Not Acceptable")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b'{"schema": \xff}', 400),
        (b'{"schema": "\xff"}', 400),
        (b'{"schema": "\\ud800"}', 400),
        (b"[" * 3000, 400),
        (b"[" * 100_000, 413),
        (b"", 422),
        (b"null", 422),
    ],
)
def test_a_body_must_be_json(registry: RegistryClient, body: bytes, status: int) -> None:
    assert registry.refused("POST", VERSIONS, body)[:2] == (status, status)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"schema": 5},
        {"schemaType": "XML", "schema": "x"},
        {"schemaType": "json", "schema": "{}"},
        {"schema": ""},
        {"id": "x"},
    ],
)
def test_a_body_must_be_a_schema(registry: RegistryClient, body: object) -> None:
    assert registry.refused("POST", VERSIONS, body)[:2] == (422, 42201)


@pytest.mark.parametrize(
    ("odd", "code"),
    [
        ({"references": 5}, 42201),
        ({"references": True}, 42201),
        ({"metadata": {"tags": 5}}, 42201),
        ({"metadata": {"tags": ["x"]}}, 42201),
        ({"ruleSet": {"enableAt": 5}}, 42210),
        ({"ruleSet": {"domainRules": [RULE, RULE]}}, 42210),
        ({"ruleSet": {"domainRules": [RULE | {"onSuccess": 5}]}}, 42210),
        ({"ruleSet": {"domainRules": [RULE | {"mode": [1]}]}}, 42210),
        ({"schemaType": "JSON", "schema": '{"$schema":5}'}, 42201),
        ({"schema": SURROGATE}, 42201),
        ({"schemaType": "JSON", "schema": '{"title":"\\ud800"}'}, 42201),
        ({"schemaType": "PROTOBUF", "schema": 'option a="\\ud800";'}, 42201),
    ],
)
def test_a_schema_is_of_its_types(registry: RegistryClient, odd: object, code: int) -> None:
    assert isinstance(odd, dict)
    assert registry.refused("POST", VERSIONS, {"schema": '"int"', **odd})[:2] == (422, code)
    assert registry.get("/schemas") == []


@pytest.mark.parametrize("version", ["0", "1_0", "%C2%A01", "%D9%A1", "9" * 5000])
def test_a_version_is_a_number(registry: RegistryClient, version: str) -> None:
    registry.register("s", '"int"')
    for spelled in ("%2B1", "%201", "1%20%0A", "%20latest"):
        assert registry.get(f"{VERSIONS}/{spelled}")["version"] == 1
    assert registry.refused("GET", f"{VERSIONS}/{version}")[:2] == (422, 42202)


@pytest.mark.parametrize("subject", [":.:", ":.c:"])
def test_a_subject_has_a_name(registry: RegistryClient, subject: str) -> None:
    body = {"schema": '"int"'}
    assert registry.refused("POST", f"/subjects/{subject}/versions", body)[:2] == (422, 42208)


@pytest.mark.parametrize("path", ["/config", "/mode"])
def test_a_setting_must_be_an_object(registry: RegistryClient, path: str) -> None:
    assert registry.refused("PUT", path, [])[0] == 400


def test_a_body_has_a_limit(registry: RegistryClient) -> None:
    body = b'{"schema": "' + MAX_BODY_BYTES * b"x" + b'"}'
    assert registry.refused("POST", VERSIONS, body)[:2] == (413, 413)


@pytest.mark.parametrize(
    "more",
    [
        {"references": [{"name": "a", "subject": "s", "version": 1}] * 2000},
        {"metadata": {"properties": dict.fromkeys(map(str, range(5000)), "")}},
        {"ruleSet": {"domainRules": [RULE] * 2000}},
        {"unknown": [[]] * 5000},
    ],
)
def test_a_body_has_a_limit_of_values(registry: RegistryClient, more: dict[str, object]) -> None:
    body = {"schema": '"int"', **more}
    assert registry.refused("POST", VERSIONS, body)[:2] == (413, 413)


def test_a_schema_that_does_not_fit_into_a_record_is_refused(
    broker: Broker, registry: RegistryClient
) -> None:
    broker.create_topic("_schemas", 1, {"cleanup.policy": "compact", "max.message.bytes": "300"})
    schema = json.dumps({"type": "fixed", "name": 300 * "F", "size": 1})
    assert registry.refused("POST", VERSIONS, {"schema": schema})[:2] == (422, 42209)
    assert registry.get("/subjects") == []


def test_a_context_has_no_colon_inside(registry: RegistryClient) -> None:
    assert registry.refused("GET", "/contexts/a:b/subjects")[0] == 400


def test_a_page_of_another_site_is_refused(registry: RegistryClient) -> None:
    assert registry.ask("GET", "/subjects", Origin="http://evil.example").status == 403
    assert registry.ask("GET", "/subjects", Host="evil.example").status == 421
