"""`odradek acls`: which principal may do what with which resource, from which host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from odradek.protocol.messages.create_acls import (
    CreateAclsCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from odradek.tools.tables import counted, print_json, show_table

from .acl_entries import Entry, EntryFilter
from .acl_terms import (
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    Operation,
    Pattern,
    Resource,
)
from .answers import check_answer
from .cluster_commands import ClusterCommands
from .failure import CommandError, first_of
from .principals import principal_text

HEADER = ("principal", "permission", "operation", "resource", "name", "pattern", "host")
_PATTERNS = {name: number for number, name in PATTERN_NAMES.items()}
_PERMISSIONS = {name: number for number, name in PERMISSION_NAMES.items()}


class AclCommands(ClusterCommands):
    """The commands. Each raises CommandError."""

    def show(
        self, principal: str | None, resources: Sequence[tuple[Resource, str]], *, as_json: bool
    ) -> None:
        """Print the entries: of a principal, or all; that apply to resources, or all."""
        named = None if principal is None else principal_text(principal)
        filters = [
            EntryFilter(
                resource=resource.number, name=name, pattern=Pattern.MATCH.value, principal=named
            )
            for resource, name in resources
        ]
        entries = self._matching(filters or [EntryFilter(principal=named)])
        _print(counted(len(entries), "entry", "entries"), entries, as_json=as_json)

    def add(self, entries: Sequence[Entry], *, as_json: bool) -> None:
        """Add entries, and print them. Those that exist stay as they are.

        Raises CommandError after that if some are refused.
        """
        creations = [
            CreateAclsCreation(
                resource_type=Resource(entry.resource).number,
                resource_name=entry.name,
                resource_pattern_type=_PATTERNS[entry.pattern],
                principal=entry.principal,
                host=entry.host,
                operation=Operation(entry.operation).number,
                permission_type=_PERMISSIONS[entry.permission],
            )
            for entry in entries
        ]
        answer = self._cluster.bootstrap.ask(
            CreateAclsRequest(creations=creations), CreateAclsResponse
        )
        added: list[Entry] = []
        failures: list[CommandError] = []
        for entry, result in zip(entries, answer.results, strict=True):
            what = f"{entry.permission} {entry.operation} on {entry.resource} {entry.name}"
            try:
                check_answer(what, result.error_code, result.error_message)
            except CommandError as error:
                failures.append(error)
            else:
                added.append(entry)
        if added:
            _print(f"added {counted(len(added), 'entry', 'entries')}", added, as_json=as_json)
        if failures:
            raise first_of(failures)

    def remove(self, filters: Sequence[EntryFilter], *, execute: bool, as_json: bool) -> None:
        """Remove the entries that match, or only show which would be removed."""
        entries = self._matching(filters)
        if execute and entries:
            self._delete(filters)
        count = counted(len(entries), "entry", "entries")
        title = f"removed {count}"
        if not execute:
            title = f"{count} would be removed; --execute removes them"
        _print(title, entries, as_json=as_json)

    def _matching(self, filters: Sequence[EntryFilter]) -> list[Entry]:
        found: dict[Entry, None] = {}
        for each in filters:
            request = DescribeAclsRequest(
                resource_type_filter=each.resource,
                resource_name_filter=each.name,
                pattern_type_filter=each.pattern,
                principal_filter=each.principal,
                host_filter=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            answer = self._cluster.bootstrap.ask(request, DescribeAclsResponse)
            check_answer("entries cannot be listed", answer.error_code, answer.error_message)
            for resource in answer.resources:
                for acl in resource.acls:
                    entry = Entry(
                        principal=acl.principal,
                        permission=_name(PERMISSION_NAMES, acl.permission_type),
                        operation=_name(OPERATION_NAMES, acl.operation),
                        resource=_name(RESOURCE_NAMES, resource.resource_type),
                        name=resource.resource_name,
                        pattern=_name(PATTERN_NAMES, resource.pattern_type),
                        host=acl.host,
                    )
                    found[entry] = None
        return sorted(found, key=lambda entry: tuple(getattr(entry, name) for name in HEADER))

    def _delete(self, filters: Sequence[EntryFilter]) -> None:
        request = DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource,
                    resource_name_filter=each.name,
                    pattern_type_filter=each.pattern,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in filters
            ]
        )
        for result in self._cluster.bootstrap.ask(request, DeleteAclsResponse).filter_results:
            check_answer("entries cannot be removed", result.error_code, result.error_message)
            for acl in result.matching_acls:
                check_answer(f"entry of {acl.principal}", acl.error_code, acl.error_message)


def _name(names: dict[int, str], number: int) -> str:
    return names.get(number, str(number))


def _print(title: str, entries: Sequence[Entry], *, as_json: bool) -> None:
    if as_json:
        print_json([asdict(entry) for entry in entries])
    else:
        rows = [[getattr(entry, name) for name in HEADER] for entry in entries]
        show_table(title, HEADER, rows, texts=len(HEADER))
