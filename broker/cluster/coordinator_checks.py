"""Requests for groups and transactional ids that another node coordinates: NOT_COORDINATOR.

A request with one id is refused as a whole. One with several is divided: the node serves those that
it coordinates. A client that may not ask for an id is refused by the handler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Any, NamedTuple

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.error_responses import error_response
from odradek.broker.requests.route import Handler
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from odradek.protocol.schema import Message, replace

TEXT = "another node is the coordinator"


class OneId(NamedTuple):
    """A request that names one id, in this field. An empty one needs no coordinator.

    `values` are those of the refusal that differ from a general error.
    """

    field: str
    kind: ResourceType
    operation: AclOperation
    values: Mapping[str, int] = MappingProxyType({})


class SeveralIds(NamedTuple):
    """A request that names several. `id_of` is a field of the items, "" if they are the ids.

    `answers` is the field of the response with an item for each id. `values` as for OneId, in each
    item. `before` is how older versions name one id.
    """

    field: str
    id_of: str
    answers: str
    kind: ResourceType
    values: Mapping[str, int] = MappingProxyType({})
    before: OneId | None = None


_GROUP, _TRANSACTION = ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
_READ, _WRITE = AclOperation.READ, AclOperation.WRITE

ONE_ID: Mapping[ApiKey, OneId] = MappingProxyType(
    {
        ApiKey.JOIN_GROUP: OneId("group_id", _GROUP, _READ),
        ApiKey.SYNC_GROUP: OneId("group_id", _GROUP, _READ),
        ApiKey.HEARTBEAT: OneId("group_id", _GROUP, _READ),
        ApiKey.LEAVE_GROUP: OneId("group_id", _GROUP, _READ),
        ApiKey.OFFSET_COMMIT: OneId("group_id", _GROUP, _READ),
        ApiKey.OFFSET_DELETE: OneId("group_id", _GROUP, AclOperation.DELETE),
        ApiKey.TXN_OFFSET_COMMIT: OneId("group_id", _GROUP, _READ),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: OneId("group_id", _GROUP, _READ),
        ApiKey.SHARE_GROUP_HEARTBEAT: OneId("group_id", _GROUP, _READ),
        ApiKey.STREAMS_GROUP_HEARTBEAT: OneId("group_id", _GROUP, _READ),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: OneId("group_id", _GROUP, _READ),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: OneId("group_id", _GROUP, AclOperation.DELETE),
        ApiKey.INIT_PRODUCER_ID: OneId(
            "transactional_id", _TRANSACTION, _WRITE, {"producer_epoch": -1}
        ),
        ApiKey.ADD_OFFSETS_TO_TXN: OneId("transactional_id", _TRANSACTION, _WRITE),
        ApiKey.END_TXN: OneId("transactional_id", _TRANSACTION, _WRITE),
    }
)
SEVERAL_IDS: Mapping[ApiKey, SeveralIds] = MappingProxyType(
    {
        ApiKey.DESCRIBE_GROUPS: SeveralIds("groups", "", "groups", _GROUP),
        ApiKey.DELETE_GROUPS: SeveralIds("groups_names", "", "results", _GROUP),
        ApiKey.OFFSET_FETCH: SeveralIds(
            "groups",
            "group_id",
            "groups",
            _GROUP,
            before=OneId("group_id", _GROUP, AclOperation.DESCRIBE),
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN: SeveralIds(
            "transactions",
            "transactional_id",
            "results_by_transaction",
            _TRANSACTION,
            before=OneId("v3_and_below_transactional_id", _TRANSACTION, _WRITE),
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: SeveralIds(
            "group_ids", "", "groups", _GROUP, {"group_epoch": 0, "assignment_epoch": 0}
        ),
        ApiKey.SHARE_GROUP_DESCRIBE: SeveralIds("group_ids", "", "groups", _GROUP),
        ApiKey.STREAMS_GROUP_DESCRIBE: SeveralIds("group_ids", "", "groups", _GROUP),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: SeveralIds("groups", "group_id", "groups", _GROUP),
        ApiKey.DESCRIBE_TRANSACTIONS: SeveralIds(
            "transactional_ids",
            "",
            "transaction_states",
            _TRANSACTION,
            {
                "transaction_timeout_ms": 0,
                "transaction_start_time_ms": 0,
                "producer_id": 0,
                "producer_epoch": 0,
            },
        ),
    }
)
# Whether the node of a request coordinates an id of a kind.
Coordinates = Callable[[RequestContext, ResourceType, str], bool]


def checking_coordinators(
    handlers: Mapping[ApiKey, Handler], coordinates: Coordinates
) -> dict[ApiKey, Handler]:
    """The handlers; those of groups and transactions serve only what the node coordinates."""
    checked = dict(handlers)
    for key, one in ONE_ID.items():
        checked[key] = _with_one(handlers[key], one, coordinates)
    for key, several in SEVERAL_IDS.items():
        checked[key] = _with_several(handlers[key], several, coordinates)
    return checked


def shards_of(context: RequestContext, kind: ResourceType) -> CoordinatorShards[Any]:
    """The shards of the coordinator of groups or of transactions."""
    coordinators = context.broker.coordinators
    if kind is _GROUP:
        return coordinators.groups.shards
    return coordinators.transactions.shards


def _with_one(handle: Handler, one: OneId, coordinates: Coordinates) -> Handler:
    @wraps(handle)
    def serve(context: RequestContext, request: Any) -> Any:
        wanted = getattr(request, one.field)
        is_elsewhere = wanted and not coordinates(context, one.kind, wanted)
        if is_elsewhere and context.authorize(one.operation, one.kind, wanted, is_logged=False):
            return replace(_refusal(context, request), **one.values)
        return handle(context, request)

    return serve


def _refusal(context: RequestContext, request: Message) -> Message:
    code = ErrorCode.NOT_COORDINATOR
    if isinstance(request, AddPartitionsToTxnRequest) and request.transactions:
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                _refused_partitions(context, each, code) for each in request.transactions
            ]
        )
    return error_response(request, context.api_version, code, TEXT, context.step)


def _refused_partitions(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction, code: ErrorCode
) -> AddPartitionsToTxnResult:
    """The refusal of one transaction of several: an error for each partition, none for all."""
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code
                    )
                    for index in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(transaction.topics)
        ],
    )


def _with_several(handle: Handler, several: SeveralIds, coordinates: Coordinates) -> Handler:
    of_one = handle if several.before is None else _with_one(handle, several.before, coordinates)

    @wraps(handle)
    def serve(context: RequestContext, request: Any) -> Any:
        items = getattr(request, several.field)
        if not items:
            return of_one(context, request)
        here: list[Any] = []
        elsewhere: list[Any] = []
        for item in context.sliced(items):
            (here if _is_here(context, item) else elsewhere).append(item)
        if not elsewhere:
            return handle(context, request)
        refused: Any = _refusal(context, replace(request, **{several.field: elsewhere}))
        answers = [replace(each, **several.values) for each in getattr(refused, several.answers)]
        refused = replace(refused, **{several.answers: answers})
        if not here:
            return refused
        response = handle(context, replace(request, **{several.field: here}))
        if inspect.isawaitable(response):
            return _joined_later(response, refused)
        return _joined(response, refused)

    def _is_here(context: RequestContext, item: Any) -> bool:
        wanted = getattr(item, several.id_of) if several.id_of else item
        return coordinates(context, several.kind, wanted) or not context.authorize(
            AclOperation.DESCRIBE, several.kind, wanted, is_logged=False
        )

    def _joined(response: Any, refused: Any) -> Any:
        both = [*getattr(response, several.answers), *getattr(refused, several.answers)]
        return replace(response, **{several.answers: both})

    async def _joined_later(pending: Any, refused: Any) -> Any:
        return _joined(await pending, refused)

    return serve
