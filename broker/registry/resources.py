"""The paths of the registry, and what each does.

Paths, flags, replies and errors are those of Confluent's Schema Registry. What it has and is not
here (associations, tags, exporters, keys for encryption) is answered by 404, as by a registry
without it. Each path is also served below `/contexts/{context}`, and with a slash at its end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from odradek.broker.http.messages import HttpError, HttpRequest, HttpResponse
from odradek.broker.http.routes import Route
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.registry import errors, subjects
from odradek.coordinator.registry.errors import RegistryError
from odradek.coordinator.registry.registry import Registry
from odradek.coordinator.registry.requests import schema_request, version_number
from odradek.coordinator.registry.schemas import Json, SchemaVersion
from odradek.coordinator.runtime.steps import Step, stepping

from .access import Access
from .replies import (
    array_response,
    changed_config,
    json_response,
    registered,
    registry_error,
    schema_of_id,
    whole_version,
)
from .requests import Asked
from .service import RegistryService

READ, WRITE = AclOperation.READ, AclOperation.WRITE
_MAX_SCHEMAS = 1000  # of one reply to GET /schemas


class Resources:
    """The paths. Methods return what is sent as JSON, or a whole response."""

    def __init__(
        self, service: RegistryService, access: Access, cluster_id: str, version: str
    ) -> None:
        self._service = service
        self._access = access
        self._cluster_id = cluster_id
        self._version = version

    def routes(self) -> Iterable[Route]:
        for resource in _RESOURCES:
            handle = partial(self._serve, resource)
            for path in _spellings(resource.path):
                yield Route(resource.method, path, handle)

    async def _serve(self, resource: _Resource, request: HttpRequest) -> HttpResponse:
        await self._access.check(request, resource.operation)
        asked = Asked(request)
        try:
            reply = await resource.answer(self, asked)
        except RegistryError as error:
            return registry_error(error)
        return (
            reply if isinstance(reply, HttpResponse) else json_response(reply, asked.content_type)
        )

    # -- the server --------------------------------------------------------------------------------

    async def root(self, _: Asked) -> Json:
        return {}

    async def cluster(self, _: Asked) -> Json:
        clusters = {
            "kafka-cluster": self._cluster_id,
            "schema-registry-cluster": "schema-registry",
        }
        return {"scope": {"path": [], "clusters": clusters}}

    async def version(self, _: Asked) -> Json:
        return {"version": self._version, "commitId": "odradek"}

    async def deployment(self, _: Asked) -> Json:
        return {"attributes": []}

    # -- schemas -----------------------------------------------------------------------------------

    async def types(self, _: Asked) -> list[str]:
        return await self._service.read(Registry.types)

    async def schemas(self, asked: Asked) -> HttpResponse:
        prefix, rule_type = asked.prefix(""), asked.text("ruleType")
        deleted, latest_only = asked.flag("deleted"), asked.flag("latestOnly")

        def find(registry: Registry, step: Step) -> list[SchemaVersion]:
            found = registry.found_versions(
                prefix, deleted=deleted, latest_only=latest_only, step=step
            )
            if not rule_type:
                return found
            return [each for each in stepping(found, step) if _has_rule(each, rule_type)]

        found = await self._service.read_all(find)
        page = asked.page(found, _MAX_SCHEMAS)
        return array_response(map(whole_version, page), asked.content_type)

    async def schema_of_id(self, asked: Asked) -> Json:
        version, text = await self._schema_of_id(asked)
        max_id = None
        if asked.flag("fetchMaxId"):
            subject = version.subject
            max_id = await self._service.read(lambda registry: registry.highest_id(subject))
        found = schema_of_id(version, with_place=True, text=text, max_id=max_id)
        return _with_references(found, version, asked)

    async def text_of_id(self, asked: Asked) -> HttpResponse:
        _, text = await self._schema_of_id(asked)
        return _text(text, asked)

    async def _schema_of_id(self, asked: Asked) -> tuple[SchemaVersion, str]:
        schema_id, subject = asked.number("id"), asked.asked_subject()
        version = await self._service.read(
            lambda registry: registry.schema(schema_id, registry.aliased(subject))
        )
        return version, await self._text_of(version, asked)

    async def subjects_of_id(self, asked: Asked) -> HttpResponse:
        found = asked.page(await self._versions_of_id(asked))
        return array_response((version.subject for version in found), asked.content_type)

    async def versions_of_id(self, asked: Asked) -> HttpResponse:
        found = asked.page(await self._versions_of_id(asked))
        places = ({"subject": v.subject, "version": v.version} for v in found)
        return array_response(places, asked.content_type)

    async def _versions_of_id(self, asked: Asked) -> list[SchemaVersion]:
        schema_id, subject = asked.number("id"), asked.asked_subject()
        deleted = asked.flag("deleted")
        try:
            return await self._service.read_all(
                lambda registry, step: registry.schema_versions(
                    schema_id, registry.aliased(subject), deleted=deleted, step=step
                )
            )
        except RegistryError as error:
            if error.code is errors.ErrorCode.SCHEMA_NOT_FOUND:
                raise errors.schema_not_found() from None
            raise

    async def schema_of_guid(self, asked: Asked) -> Json:
        guid = asked.part("guid")
        version = await self._service.read(lambda registry: registry.schema_by_guid(guid))
        text = await self._text_of(version, asked)
        return schema_of_id(version, with_place=False, text=text)

    async def ids_of_guid(self, asked: Asked) -> list[Json]:
        guid = asked.part("guid")
        found = await self._service.read(lambda registry: registry.ids_of_guid(guid))
        return [{"context": context, "id": schema_id} for context, schema_id in found]

    async def _text_of(self, version: SchemaVersion, asked: Asked) -> str:
        """The text in the format that the query names."""
        text_format = asked.text("format").strip().lower()
        if not text_format:
            return version.schema.text
        return await self._service.read(
            lambda registry: registry.text_in(version, text_format), asked.client
        )

    # -- subjects ----------------------------------------------------------------------------------

    async def subjects(self, asked: Asked) -> HttpResponse:
        prefix = asked.prefix(subjects.ALL_CONTEXTS)
        deleted, deleted_only = asked.flag("deleted"), asked.flag("deletedOnly")
        found = await self._service.read_all(
            lambda registry, step: registry.subjects(
                prefix, deleted=deleted, deleted_only=deleted_only, step=step
            )
        )
        return array_response(asked.page(found), asked.content_type)

    async def look_up(self, asked: Asked) -> Json:
        subject, request = asked.subject, schema_request(asked.body())
        normalize, deleted = asked.flag("normalize"), asked.flag("deleted")
        version = await self._service.read(
            lambda registry: registry.look_up(
                registry.aliased(subject), request, normalize=normalize, deleted=deleted
            ),
            asked.client,
        )
        return {**whole_version(version), "schema": await self._text_of(version, asked)}

    async def delete_subject(self, asked: Asked) -> list[int]:
        subject, permanent = asked.subject, asked.flag("permanent")
        decision = await self._service.change_all(
            lambda registry, step: registry.delete_subject(
                registry.aliased(subject), permanent=permanent, step=step
            )
        )
        return decision.reply

    async def latest_with_metadata(self, asked: Asked) -> Json:
        subject, deleted = asked.subject, asked.flag("deleted")
        wanted = dict(zip(asked.texts("key"), asked.texts("value"), strict=False))
        version = await self._service.read(
            lambda registry: registry.latest_with(
                registry.aliased(subject), wanted, deleted=deleted
            )
        )
        return {**whole_version(version), "schema": await self._text_of(version, asked)}

    # -- versions ----------------------------------------------------------------------------------

    async def versions(self, asked: Asked) -> list[int]:
        subject = asked.subject
        deleted, deleted_only = asked.flag("deleted"), asked.flag("deletedOnly")
        as_negative = asked.flag("deletedAsNegative")

        def find(registry: Registry) -> list[int]:
            name = registry.aliased(subject)
            found = registry.versions(name, deleted=deleted, deleted_only=deleted_only)
            if as_negative:
                found = registry.versions(name, deleted=True)
                return [-each.version if each.deleted else each.version for each in found]
            return [each.version for each in found]

        return asked.page(await self._service.read(find))

    async def register(self, asked: Asked) -> Json:
        subject, request = asked.subject, schema_request(asked.body())
        normalize, force = asked.flag("normalize"), asked.flag("force")
        decision = await self._service.change(
            lambda registry: registry.register(
                registry.aliased(subject), request, normalize=normalize, force=force
            ),
            asked.client,
        )
        version = decision.reply
        return {**registered(version), "schema": await self._text_of(version, asked)}

    async def get_version(self, asked: Asked) -> Json:
        version = await self._version_of(asked, deleted=asked.flag("deleted"))
        found = {**whole_version(version), "schema": await self._text_of(version, asked)}
        return _with_references(found, version, asked)

    async def text_of_version(self, asked: Asked) -> HttpResponse:
        version = await self._version_of(asked, deleted=asked.flag("deleted"))
        return _text(await self._text_of(version, asked), asked)

    async def referenced_by(self, asked: Asked) -> list[int]:
        version, deleted = await self._version_of(asked, deleted=True), asked.flag("deleted")
        return asked.page(
            await self._service.read(
                lambda registry: registry.referenced_by(
                    version.subject, version.version, deleted=deleted
                )
            )
        )

    async def _version_of(self, asked: Asked, *, deleted: bool) -> SchemaVersion:
        subject, number = asked.subject, version_number(asked.part("version"))
        return await self._service.read(
            lambda registry: registry.version(registry.aliased(subject), number, deleted=deleted)
        )

    async def delete_version(self, asked: Asked) -> int:
        subject, number = asked.subject, version_number(asked.part("version"))
        permanent = asked.flag("permanent")
        decision = await self._service.change(
            lambda registry: registry.delete_version(
                registry.aliased(subject), number, permanent=permanent
            )
        )
        return decision.reply

    async def compatibility(self, asked: Asked) -> Json:
        return await self._compatibility(asked, None)

    async def compatibility_with(self, asked: Asked) -> Json:
        return await self._compatibility(asked, version_number(asked.part("version")))

    async def _compatibility(self, asked: Asked, number: int | None) -> Json:
        subject, request = asked.subject, schema_request(asked.body())
        normalize, verbose = asked.flag("normalize"), asked.flag("verbose")
        try:
            reasons = await self._service.read(
                lambda registry: registry.incompatibilities(
                    registry.aliased(subject), request, number, normalize=normalize
                ),
                asked.client,
            )
        except RegistryError as error:
            if not verbose or error.code is not errors.ErrorCode.INVALID_SCHEMA:
                raise
            reasons = [error.message]
        reply: Json = {"is_compatible": not reasons}
        return {**reply, "messages": reasons} if verbose else reply

    # -- configurations and modes ------------------------------------------------------------------

    async def config(self, asked: Asked) -> Json:
        scope, in_scope = asked.scope, asked.flag("defaultToGlobal")
        return await self._service.read(
            lambda registry: registry.config(scope, default_to_global=in_scope)
        )

    async def change_config(self, asked: Asked) -> Json:
        scope, request = asked.scope, asked.object()
        decision = await self._service.change(
            lambda registry: registry.change_config(scope, request)
        )
        return changed_config(decision.reply)

    async def delete_config(self, asked: Asked) -> Json:
        scope = asked.scope
        decision = await self._service.change(lambda registry: registry.delete_config(scope))
        return decision.reply

    async def mode(self, asked: Asked) -> Json:
        scope, in_scope = asked.scope, asked.flag("defaultToGlobal")
        mode = await self._service.read(
            lambda registry: registry.mode(scope, default_to_global=in_scope)
        )
        return {"mode": mode.value}

    async def change_mode(self, asked: Asked) -> Json:
        scope, force, name = asked.scope, asked.flag("force"), asked.object().get("mode")
        if name is not None and not isinstance(name, str):
            raise errors.invalid_mode()
        decision = await self._service.change_all(
            lambda registry, step: registry.change_mode(scope, name, force=force, step=step)
        )
        return {"mode": decision.reply} if decision.reply is not None else {}

    async def delete_mode(self, asked: Asked) -> Json:
        scope, recursive = asked.scope, asked.flag("recursive")
        decision = await self._service.change(
            lambda registry: registry.delete_mode(scope, recursive=recursive)
        )
        return {"mode": decision.reply.value} if decision.reply is not None else {}

    # -- contexts ----------------------------------------------------------------------------------

    async def contexts(self, asked: Asked) -> list[str]:
        prefix = asked.text("contextPrefix")
        found = await self._service.read(Registry.contexts)
        return asked.page([name for name in found if name.startswith(prefix)])

    async def delete_context(self, asked: Asked) -> HttpResponse:
        context = asked.context
        if not context:  # the default one
            raise HttpError(HTTPStatus.METHOD_NOT_ALLOWED, "the default context stays")
        await self._service.change_all(
            lambda registry, step: registry.delete_context(context, step)
        )
        return HttpResponse(HTTPStatus.NO_CONTENT, b"", asked.content_type)


def _has_rule(version: SchemaVersion, rule_type: str) -> bool:
    rule_set = version.schema.rule_set or {}
    lists = (rules for rules in rule_set.values() if isinstance(rules, list))
    return any(rule.get("type") == rule_type for rules in lists for rule in rules)


def _with_references(found: Json, version: SchemaVersion, asked: Asked) -> Json:
    """Return a schema with the contexts of the subjects that it refers to, if that is asked for."""
    if asked.text("referenceFormat") == "qualified":
        for reference in found.get("references", ()):
            reference["subject"] = subjects.beside(version.subject, reference["subject"])
    return found


def _text(text: str, asked: Asked) -> HttpResponse:
    """A schema as it is, without quotes."""
    return HttpResponse(HTTPStatus.OK, text.encode(), asked.content_type)


class _Resource(NamedTuple):
    """One method of one path. `operation` on the topic `_schemas` must be allowed."""

    method: str
    path: str
    operation: AclOperation | None
    answer: Callable[[Resources, Asked], Awaitable[Any]]


def _spellings(path: str) -> Iterable[str]:
    """The paths by which a resource is served."""
    yield path
    if path == "/":
        return
    yield f"{path}/"
    if not path.startswith("/contexts/"):
        yield "/contexts/{context}" + path
        yield "/contexts/{context}" + path + "/"


_SUBJECT = "/subjects/{subject}"
_VERSION = _SUBJECT + "/versions/{version}"
_COMPATIBILITY = "/compatibility/subjects/{subject}/versions"
_RESOURCES = (
    _Resource("GET", "/", None, Resources.root),
    _Resource("POST", "/", None, Resources.root),
    _Resource("GET", "/v1/metadata/id", None, Resources.cluster),
    _Resource("GET", "/v1/metadata/version", None, Resources.version),
    _Resource("GET", "/v1/metadata/deployment", None, Resources.deployment),
    _Resource("GET", "/schemas", READ, Resources.schemas),
    _Resource("GET", "/schemas/types", READ, Resources.types),
    _Resource("GET", "/schemas/ids/{id}", READ, Resources.schema_of_id),
    _Resource("GET", "/schemas/ids/{id}/schema", READ, Resources.text_of_id),
    _Resource("GET", "/schemas/ids/{id}/subjects", READ, Resources.subjects_of_id),
    _Resource("GET", "/schemas/ids/{id}/versions", READ, Resources.versions_of_id),
    _Resource("GET", "/schemas/guids/{guid}", READ, Resources.schema_of_guid),
    _Resource("GET", "/schemas/guids/{guid}/ids", READ, Resources.ids_of_guid),
    _Resource("GET", "/subjects", READ, Resources.subjects),
    _Resource("POST", _SUBJECT, READ, Resources.look_up),
    _Resource("DELETE", _SUBJECT, WRITE, Resources.delete_subject),
    _Resource("GET", _SUBJECT + "/metadata", READ, Resources.latest_with_metadata),
    _Resource("GET", _SUBJECT + "/versions", READ, Resources.versions),
    _Resource("POST", _SUBJECT + "/versions", WRITE, Resources.register),
    _Resource("GET", _VERSION, READ, Resources.get_version),
    _Resource("DELETE", _VERSION, WRITE, Resources.delete_version),
    _Resource("GET", _VERSION + "/schema", READ, Resources.text_of_version),
    _Resource("GET", _VERSION + "/referencedby", READ, Resources.referenced_by),
    _Resource("POST", _COMPATIBILITY, READ, Resources.compatibility),
    _Resource("POST", _COMPATIBILITY + "/{version}", READ, Resources.compatibility_with),
    _Resource("GET", "/config", READ, Resources.config),
    _Resource("PUT", "/config", WRITE, Resources.change_config),
    _Resource("DELETE", "/config", WRITE, Resources.delete_config),
    _Resource("GET", "/config/{subject}", READ, Resources.config),
    _Resource("PUT", "/config/{subject}", WRITE, Resources.change_config),
    _Resource("DELETE", "/config/{subject}", WRITE, Resources.delete_config),
    _Resource("GET", "/mode", READ, Resources.mode),
    _Resource("PUT", "/mode", WRITE, Resources.change_mode),
    _Resource("DELETE", "/mode", WRITE, Resources.delete_mode),
    _Resource("GET", "/mode/{subject}", READ, Resources.mode),
    _Resource("PUT", "/mode/{subject}", WRITE, Resources.change_mode),
    _Resource("DELETE", "/mode/{subject}", WRITE, Resources.delete_mode),
    _Resource("GET", "/contexts", READ, Resources.contexts),
    _Resource("DELETE", "/contexts/{context}", WRITE, Resources.delete_context),
)
