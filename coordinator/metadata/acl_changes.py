"""Computes the records that add and remove access control entries.

An entry that exists already is not added again, and that is no error. Of the new entries of a
request, those that are not valid are refused one by one. Kafka: AclApis, AclControlManager.
"""

from collections.abc import Collection, Sequence

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    AccessControlEntryRecord,
    RemoveAccessControlEntryRecord,
)

from .acls import ANY, AclFilter, Acls, AclSelection, PatternType, Permission, fields_of
from .host_patterns import network_of
from .record_limit import MAX_RECORDS, limited_outcome

# On the wire and in records: never renumber. Kafka: ResourceType, AclOperation.
_RESOURCE_TYPES = range(2, 8)
_OPERATIONS = range(2, 16)
_CLUSTER = 4
_CLUSTER_NAME = "kafka-cluster"
_FIRST_VERSION_WITH_NETWORKS = 32  # metadata.version 4.4-IV1

# The matches of all filters of one request. Kafka does not limit them.
MAX_RESULTS = 10 * MAX_RECORDS

Deletions = list[list[AccessControlEntryRecord] | ApiError]


def create_acls(
    acls: Acls,
    entries: Sequence[AccessControlEntryRecord],
    metadata_version: int,
    step: Step = no_step,
) -> Outcome[list[ApiError | None]]:
    """Add entries. The reply has for each None, or why it is refused.

    Raises POLICY_VIOLATION when the request is too large for one operation.
    """
    reply: list[ApiError | None] = []
    records: dict[object, JournalRecord] = {}
    for entry in stepping(entries, step):
        try:
            _check_entry(entry, metadata_version)
        except ApiError as refusal:
            reply.append(refusal.with_traceback(None))
            continue
        reply.append(None)
        if entry not in acls:
            records.setdefault(fields_of(entry), JournalRecord(entry))
    return limited_outcome(reply, [*records.values()], validate_only=False)


def delete_acls(
    acls: Acls, filters: Sequence[AclFilter], step: Step = no_step
) -> Outcome[Deletions]:
    """Remove the entries that match filters. The reply has for each filter its matches.

    An entry that matches several filters is in the result of each. Raises INVALID_REQUEST when the
    filters match more entries than one operation may remove, or the results are too long together.
    """
    selection = AclSelection(acls, step)
    reply: Deletions = []
    records: dict[bytes, JournalRecord] = {}
    result_count = 0
    for wanted in stepping(filters, step):
        problem = _problem_of(wanted)
        if problem is not None:
            reply.append(ApiError(ErrorCode.INVALID_REQUEST, problem))
            continue
        found = selection.matches(wanted)
        result_count += len(found)
        if result_count > MAX_RESULTS:
            text = f"The results of all filters have more than {MAX_RESULTS} acls."
            raise _invalid(text)
        for entry in stepping(found, step):
            if entry.id not in records:
                removal = RemoveAccessControlEntryRecord(id=entry.id)
                records[entry.id] = JournalRecord(removal)
        if len(records) > MAX_RECORDS:
            text = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."
            raise _invalid(text)
        reply.append(found)
    return Outcome(reply=reply, records=tuple(records.values()))


def _check_entry(entry: AccessControlEntryRecord, metadata_version: int) -> None:
    """Raise INVALID_REQUEST or UNSUPPORTED_VERSION for the first field that is not valid."""
    name = entry.resource_name
    if entry.resource_type == _CLUSTER and name != _CLUSTER_NAME:
        raise _invalid(f"The only valid name for the CLUSTER resource is {_CLUSTER_NAME}")
    if not name:
        raise _invalid("Invalid empty resource name")
    _check_code("resourceType", entry.resource_type, _RESOURCE_TYPES)
    _check_code("patternType", entry.pattern_type, (PatternType.LITERAL, PatternType.PREFIXED))
    _check_code("operation", entry.operation, _OPERATIONS)
    _check_code("permissionType", entry.permission_type, tuple(Permission))
    if ":" not in entry.principal:
        raise _invalid(
            f"Could not parse principal from `{entry.principal}` (no colon is present separating"
            " the principal type from the principal name)"
        )
    _check_host(entry.host, metadata_version)


def _check_host(host: str, metadata_version: int) -> None:
    if not host:
        raise _invalid("Host pattern cannot be null or empty")
    if "/" not in host:
        return
    if metadata_version < _FIRST_VERSION_WITH_NETWORKS:
        text = "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher."
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, text)
    try:
        network_of(host)
    except ValueError as error:
        raise _invalid(f"Invalid CIDR notation '{host}': {error}") from None


def _check_code(field: str, code: int, allowed: Collection[int]) -> None:
    if code not in allowed:
        names = {ANY: "ANY", PatternType.MATCH: "MATCH"}
        raise _invalid(f"Invalid {field} {names.get(code, 'UNKNOWN')}")


def _problem_of(wanted: AclFilter) -> str | None:
    """What is wrong with a filter, or None."""
    if wanted.resource_type not in (ANY, *_RESOURCE_TYPES):
        return "Unknown patternFilter."
    if wanted.pattern_type not in PatternType.__members__.values():
        return "Unknown patternFilter."
    if wanted.operation not in (ANY, *_OPERATIONS):
        return "Unknown entryFilter."
    if wanted.permission not in (ANY, *Permission):
        return "Unknown entryFilter."
    return None


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
