"""Each path of the REST API, with its flags, as Confluent's registry serves it."""

import json

from odradek.broker.testing.broker import Broker
from tests.support.registry_client import RegistryClient

INT, STRING, LONG = '"int"', '"string"', '"long"'
GUID = "ef524ea1-b91e-7317-3d93-8ade36c1db32"  # of INT


def test_the_root_is_an_empty_object(registry: RegistryClient) -> None:
    assert registry.get("/") == {}
    assert registry.post("/", {}) == {}


def test_the_server_names_its_cluster_and_version(registry: RegistryClient) -> None:
    scope = registry.get("/v1/metadata/id")["scope"]
    assert scope["path"] == []
    assert scope["clusters"]["kafka-cluster"]
    assert scope["clusters"]["schema-registry-cluster"] == "schema-registry"
    assert set(registry.get("/v1/metadata/version")) == {"version", "commitId"}
    assert registry.get("/v1/metadata/deployment") == {"attributes": []}


def test_a_new_schema_gets_an_id_and_is_found_by_it(registry: RegistryClient) -> None:
    new = registry.post("/subjects/s/versions", {"schema": INT})
    content = {"guid": GUID, "schemaType": "AVRO", "schema": INT}
    assert new == {"id": 1, "version": 1, **content}
    again = registry.post("/subjects/s/versions", {"schema": '{"type": "int"}'})
    stored_ms = again.pop("ts")
    assert again == {"id": 1, "version": 1, **content, "deleted": False}
    stored = {**content, "ts": stored_ms, "deleted": False}
    place = {"subject": "s", "version": 1}
    assert registry.get("/schemas/ids/1") == {**place, **stored}
    assert registry.get("/schemas/ids/1?subject=s") == {**place, **stored}
    assert registry.get("/schemas/ids/1?fetchMaxId=true") == {**place, **stored, "maxId": 1}
    assert registry.get("/schemas/ids/1/schema") == "int"
    assert registry.get("/schemas/ids/1/subjects") == ["s"]
    assert registry.get("/schemas/ids/1/versions") == [place]
    assert registry.get(f"/schemas/guids/{GUID}") == stored
    assert registry.get(f"/schemas/guids/{GUID}/ids") == [{"context": ".", "id": 1}]
    assert registry.get("/subjects/s/versions/1") == {**place, "id": 1, **stored}
    assert registry.get("/subjects/s/versions/latest") == {**place, "id": 1, **stored}
    assert registry.get("/subjects/s/versions/-1/schema") == "int"
    assert registry.post("/subjects/s", {"schema": INT}) == {**place, "id": 1, **stored}
    assert registry.get("/schemas") == [{**place, "id": 1, **stored}]


def test_a_path_may_end_with_a_slash(registry: RegistryClient) -> None:
    assert registry.post("/contexts/c/subjects/s/versions/", {"schema": INT})["id"] == 1
    assert registry.get("/subjects/") == [":.c:s"]
    assert registry.get("/contexts/c/subjects/s/versions/1/")["id"] == 1
    assert registry.put("/config/", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    assert registry.refused("POST", "/config/")[0] == 405
    registry.delete("/contexts/c/subjects/s/")
    registry.delete("/contexts/c/subjects/s/?permanent=true")
    assert registry.ask("DELETE", "/contexts/c/").status == 204
    assert registry.get("/contexts/") == ["."]
    assert registry.refused("GET", "/subjects//")[0] == 404


def test_the_types_are_those_of_confluent(registry: RegistryClient) -> None:
    assert registry.get("/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]


def test_subjects_are_listed_by_prefix_and_in_pages(registry: RegistryClient) -> None:
    for subject in ("b", "a1", "a2", "a3"):
        registry.register(subject, INT)
    registry.delete("/subjects/a2")
    assert registry.get("/subjects") == ["a1", "a3", "b"]
    assert registry.get("/subjects?deleted=true") == ["a1", "a2", "a3", "b"]
    assert registry.get("/subjects?deletedOnly=true") == ["a2"]
    assert registry.get("/subjects?subjectPrefix=a&limit=1&offset=1") == ["a3"]
    assert registry.get("/subjects?subjectPrefix=a&limit=-1") == ["a1", "a3"]


def test_many_subjects_are_listed(registry: RegistryClient) -> None:
    """More than are listed in one turn."""
    for number in range(310):
        registry.register(f"s{number:03}", INT)
    assert len(registry.get("/subjects")) == 310
    assert len(registry.get("/schemas?limit=5&latestOnly=true")) == 5


def test_versions_are_listed_with_those_that_are_deleted(registry: RegistryClient) -> None:
    registry.put("/config", {"compatibility": "NONE"})
    for schema in (INT, STRING, LONG):
        registry.register("s", schema)
    assert registry.delete("/subjects/s/versions/2") == 2
    versions = "/subjects/s/versions"
    assert registry.get(versions) == [1, 3]
    assert registry.get(f"{versions}?deleted=true") == [1, 2, 3]
    assert registry.get(f"{versions}?deletedOnly=true") == [2]
    assert registry.get(f"{versions}?deletedAsNegative=true") == [1, -2, 3]
    assert registry.get(f"{versions}?offset=1&limit=1") == [3]
    assert registry.refused("GET", f"{versions}/2") == (404, 40402, "Version 2 not found.")
    assert registry.get(f"{versions}/2?deleted=true")["deleted"] is True
    assert registry.get("/schemas/ids/2")["schema"] == STRING, "records may still have the id"
    assert registry.get("/schemas/ids/2/subjects") == []
    assert registry.get("/schemas/ids/2/subjects?deleted=true") == ["s"]


def test_a_version_is_deleted_in_two_steps(registry: RegistryClient) -> None:
    registry.register("s", INT)
    path = "/subjects/s/versions/1"
    assert registry.refused("DELETE", f"{path}?permanent=true")[:2] == (404, 40407)
    assert registry.delete(path) == 1
    assert registry.refused("DELETE", path)[:2] == (404, 40406)
    assert registry.delete(f"{path}?permanent=true") == 1
    assert registry.refused("GET", path) == (404, 40401, "Subject 's' not found.")
    assert registry.refused("GET", "/schemas/ids/1") == (404, 40403, "Schema 1 not found")


def test_a_subject_is_deleted_in_two_steps(registry: RegistryClient) -> None:
    registry.register("s", INT)
    assert registry.refused("DELETE", "/subjects/s?permanent=true")[:2] == (404, 40405)
    assert registry.delete("/subjects/s") == [1]
    assert registry.refused("DELETE", "/subjects/s")[:2] == (404, 40404)
    assert registry.delete("/subjects/s?permanent=true") == [1]
    assert registry.refused("DELETE", "/subjects/s")[:2] == (404, 40401)
    assert registry.get("/subjects?deleted=true") == []


def test_a_look_up_finds_a_version_or_says_what_is_missing(registry: RegistryClient) -> None:
    assert registry.refused("POST", "/subjects/s", {"schema": INT})[:2] == (404, 40401)
    registry.register("s", INT)
    assert registry.refused("POST", "/subjects/s", {"schema": STRING})[1:] == (
        40403,
        "Schema not found",
    )
    registry.delete("/subjects/s")
    assert registry.refused("POST", "/subjects/s", {"schema": INT})[1] == 40401
    assert registry.post("/subjects/s?deleted=true", {"schema": INT})["version"] == 1


def test_references_are_kept_and_block_deletion(registry: RegistryClient) -> None:
    base = {"type": "record", "name": "B", "fields": []}
    registry.register("base", json.dumps(base))
    reference = {"name": "B", "subject": "base", "version": 1}
    record = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "B"}]}
    referring = registry.register("s", json.dumps(record), references=[reference])
    assert registry.get("/subjects/s/versions/1")["references"] == [reference]
    assert registry.get("/subjects/base/versions/1/referencedby") == [referring]
    assert registry.refused("DELETE", "/subjects/base/versions/1")[:2] == (422, 42206)
    text = registry.get(f"/schemas/ids/{referring}?format=resolved")["schema"]
    assert json.loads(text)["fields"][0]["type"] == base


def test_the_subject_of_a_reference_is_shown_with_its_context_where_that_is_asked(
    registry: RegistryClient,
) -> None:
    base = {"type": "record", "name": "B", "fields": []}
    record = {"type": "record", "name": "R", "fields": [{"name": "b", "type": "B"}]}
    reference = {"name": "B", "subject": "base", "version": 1}
    for context, qualified in (("", "base"), (":.prod:", ":.prod:base")):
        registry.register(f"{context}base", json.dumps(base))
        number = registry.register(f"{context}s", json.dumps(record), references=[reference])
        version = f"/subjects/{context}s/versions/1"
        of_id = f"/schemas/ids/{number}?subject={context}s&"
        for form, subject in (("", "base"), ("default", "base"), ("qualified", qualified)):
            for path in (f"{version}?", of_id):
                found = registry.get(f"{path}referenceFormat={form}")
                assert found["references"] == [{**reference, "subject": subject}]
        assert registry.get(version)["references"] == [reference]
    unreferring = registry.get("/subjects/base/versions/1?referenceFormat=qualified")
    assert "references" not in unreferring


def test_metadata_and_rules_are_kept(registry: RegistryClient) -> None:
    metadata = {"properties": {"owner": "me", "v": "1"}}
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL"}]}
    registry.register("s", INT, metadata=metadata, ruleSet=rules)
    found = registry.get("/subjects/s/versions/1")
    assert found["metadata"] == metadata
    assert found["ruleSet"]["domainRules"][0]["type"] == "CEL"
    assert registry.get("/subjects/s/metadata?key=owner&value=me")["version"] == 1
    assert registry.refused("GET", "/subjects/s/metadata?key=owner&value=you")[1] == 40403
    assert len(registry.get("/schemas?ruleType=CEL")) == 1
    assert registry.get("/schemas?ruleType=OTHER") == []
    bad = {"schema": INT, "ruleSet": {"domainRules": [{"name": "r"}]}}
    assert registry.refused("POST", "/subjects/t/versions", bad)[:2] == (422, 42210)


def test_compatibility_is_checked_with_reasons(registry: RegistryClient) -> None:
    registry.register("s", INT)
    path = "/compatibility/subjects/s/versions"
    for each in (path, f"{path}/latest", f"{path}/1"):
        assert registry.post(each, {"schema": LONG}) == {"is_compatible": True}
        assert registry.post(each, {"schema": STRING}) == {"is_compatible": False}
        found = registry.post(f"{each}?verbose=true", {"schema": STRING})
        assert "TYPE_MISMATCH" in found["messages"][0]
        assert registry.post(f"{each}?verbose=true", {"schema": LONG})["messages"] == []
    assert registry.refused("POST", f"{path}/7", {"schema": INT})[:2] == (404, 40402)
    assert registry.refused("POST", f"{path}/0", {"schema": INT})[:2] == (422, 42202)
    assert registry.refused("POST", path, {"schema": "nonsense"})[:2] == (422, 42201)
    found = registry.post(f"{path}?verbose=true", {"schema": "nonsense"})
    assert found["is_compatible"] is False
    assert registry.refused("POST", "/subjects/s/versions", {"schema": STRING})[:2] == (409, 40901)
    forced = registry.post("/subjects/s/versions?force=true", {"schema": STRING})
    assert forced["version"] == 2


def test_a_long_schema_is_served_as_a_short_one(registry: RegistryClient) -> None:
    """A process of the broker parses and compares it."""

    def long(first_type: str) -> str:
        fields = [{"name": f"field{index}", "type": "int"} for index in range(5000)]
        fields[0]["type"] = first_type
        return json.dumps({"type": "record", "name": "Long", "fields": fields})

    assert registry.register("s", long("int")) == 1
    assert registry.register("s", long("long")) == 2
    assert registry.register("s", long("int")) == 1
    assert registry.post("/subjects/s", {"schema": long("long")})["version"] == 2
    check = "/compatibility/subjects/s/versions?verbose=true"
    reply = registry.post(check, {"schema": long("string")})
    assert not reply["is_compatible"]
    assert "TYPE_MISMATCH" in reply["messages"][0]
    assert json.loads(registry.get("/schemas/ids/2?format=resolved")["schema"])["name"] == "Long"


def test_configurations_are_changed_and_inherited(registry: RegistryClient) -> None:
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.put("/config", {"compatibility": "full"}) == {"compatibility": "FULL"}
    assert registry.refused("GET", "/config/s")[:2] == (404, 40408)
    assert registry.get("/config/s?defaultToGlobal=true") == {"compatibilityLevel": "FULL"}
    changed = registry.put("/config/s", {"compatibility": "NONE", "normalize": True})
    assert changed == {"normalize": True, "compatibility": "NONE"}
    assert registry.get("/config/s") == {"normalize": True, "compatibilityLevel": "NONE"}
    assert registry.refused("PUT", "/config/s", {"compatibility": "x"})[:2] == (422, 42203)
    assert registry.delete("/config/s") == {"normalize": True, "compatibilityLevel": "NONE"}
    assert registry.refused("DELETE", "/config/s")[:2] == (404, 40401)
    assert registry.delete("/config") == {"compatibilityLevel": "FULL"}
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}


def test_an_alias_stands_for_a_subject(registry: RegistryClient) -> None:
    registry.register("s", INT)
    registry.put("/config/other", {"alias": "s"})
    assert registry.get("/subjects/other/versions") == [1]
    assert registry.get("/subjects/other/versions/latest")["subject"] == "s"
    assert registry.get("/schemas/ids/1?subject=other")["subject"] == "s"


def test_modes_limit_what_may_be_written(registry: RegistryClient) -> None:
    assert registry.get("/mode") == {"mode": "READWRITE"}
    assert registry.refused("GET", "/mode/s")[:2] == (404, 40409)
    assert registry.put("/mode/s", {"mode": "READONLY"}) == {"mode": "READONLY"}
    assert registry.get("/mode/s") == {"mode": "READONLY"}
    assert registry.get("/mode/t?defaultToGlobal=true") == {"mode": "READWRITE"}
    assert registry.refused("POST", "/subjects/s/versions", {"schema": INT})[:2] == (422, 42205)
    assert registry.refused("PUT", "/mode", {"mode": "x"})[:2] == (422, 42204)
    assert registry.refused("PUT", "/mode", {"mode": 5})[:2] == (422, 42204)
    assert registry.delete("/mode/s") == {"mode": "READONLY"}
    assert registry.refused("DELETE", "/mode/s")[:2] == (404, 40401)


def test_ids_are_given_in_the_mode_of_an_import(registry: RegistryClient) -> None:
    registry.register("t", INT)
    with_id = {"schema": STRING, "id": 77, "version": 5}
    assert registry.refused("POST", "/subjects/s/versions", with_id)[:2] == (422, 42205)
    assert registry.refused("PUT", "/mode", {"mode": "IMPORT"})[:2] == (422, 42205)
    assert registry.put("/mode?force=true", {"mode": "IMPORT"}) == {"mode": "IMPORT"}
    assert registry.post("/subjects/s/versions", with_id)["id"] == 77
    registry.put("/mode/s", {"mode": "READWRITE"})
    assert registry.delete("/mode?recursive=true") == {"mode": "IMPORT"}
    assert registry.refused("GET", "/mode/s")[1] == 40409
    assert registry.get("/subjects/s/versions") == [5]


def test_a_context_numbers_its_schemas_for_itself(registry: RegistryClient) -> None:
    registry.register("s", STRING)
    for prefix in ("/contexts/prod", "/contexts/.prod", "/contexts/:.prod:"):
        assert registry.post(f"{prefix}/subjects/s/versions", {"schema": INT})["id"] == 1
        assert registry.get(f"{prefix}/subjects") == [":.prod:s"]
        assert registry.get(f"{prefix}/schemas/ids/1")["schema"] == INT
        assert registry.get(f"{prefix}/schemas/types") == ["JSON", "PROTOBUF", "AVRO"]
    assert registry.get("/subjects/:.prod:s/versions") == [1]
    assert registry.get("/subjects") == [":.prod:s", "s"]
    assert registry.get("/subjects?subjectPrefix=s") == ["s"]
    assert registry.get("/contexts") == [".", ".prod"]
    assert registry.get("/contexts?contextPrefix=.p") == [".prod"]
    assert registry.put("/contexts/prod/config", {"compatibility": "NONE"})
    assert registry.get("/config/:.prod:") == {"compatibilityLevel": "NONE"}
    assert registry.get("/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("DELETE", "/contexts/:.prod:")[:2] == (422, 42211)
    registry.delete("/subjects/:.prod:s")
    registry.delete("/subjects/:.prod:s?permanent=true")
    assert registry.ask("DELETE", "/contexts/:.prod:").status == 204
    assert registry.get("/contexts") == ["."]


def test_a_prefix_without_a_context_is_in_the_default_context(registry: RegistryClient) -> None:
    for subject in ("s", "t", ":.prod:s", ":.pro:s"):
        registry.register(subject, INT)
    everywhere = [":.pro:s", ":.prod:s", "s", "t"]
    assert registry.get("/subjects") == everywhere
    for prefix, found in (
        ("", ["s", "t"]),
        ("s", ["s"]),
        (":.:s", ["s"]),
        (":.prod:", [":.prod:s"]),
        (":.pro:", [":.pro:s"]),
        (":.pro", [":.pro:s", ":.prod:s"]),
        (":*:s", [":.pro:s", ":.prod:s", "s"]),
        (":*:", everywhere),
    ):
        assert registry.get(f"/subjects?subjectPrefix={prefix}") == found
        schemas = registry.get(f"/schemas?subjectPrefix={prefix}")
        assert [schema["subject"] for schema in schemas] == found
    assert len(registry.get("/schemas")) == 2
    for context in (".", ":.:"):
        assert registry.get(f"/contexts/{context}/subjects") == ["s", "t"]
        assert registry.get(f"/contexts/{context}/subjects?subjectPrefix=:*:") == everywhere


def test_names_may_have_any_letters(registry: RegistryClient) -> None:
    path = "/subjects/a%2Fb%20%C3%A4/versions"
    assert registry.post(path, {"schema": INT})["version"] == 1
    assert registry.get("/subjects") == ["a/b ä"]


def test_a_reset_of_the_broker_empties_the_registry(
    broker: Broker, registry: RegistryClient
) -> None:
    registry.register("s", INT)
    broker.reset()
    assert registry.get("/subjects") == []
    assert registry.register("t", STRING) == 1
