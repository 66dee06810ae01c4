"""What a test can let go wrong: see Fault."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ErrorCode

from .call import MAX_DURATION_MS

E = TypeVar("E", bound=IntEnum)


class _Fields(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The fields of Fault, without its checks."""

    api: ApiKey | str | None = None
    node: int | None = None
    topic: str | None = None
    partition: int | None = None
    client_id: str | None = None
    after: int = 0
    times: int | None = 1
    probability: float = 1.0
    seed: int = 0
    delay_before_ms: int = 0
    delay_after_ms: int = 0
    error: ErrorCode | str | None = None
    where: Literal["request", "partitions"] | None = None
    cut: Literal["before_work", "before_answer", "after_answer"] | None = None


class Fault(_Fields, frozen=True, kw_only=True, omit_defaults=True):
    """What goes wrong, in which requests, and how often.

    Which requests: those of an `api`, to the `node` of this id, from a `client_id`, and those that
    name a `topic` and a `partition`. None: any. A Fetch names the partitions of its session, too.

    How often: the first `after` of these requests are let through, and of the others each fails
    with `probability`, until `times` have failed; None: there is no end. The same `seed` and the
    same requests give the same sequence.

    What, in this order: the broker waits for `delay_before_ms`, also if the client goes away. It
    does what the request asks, or answers with an `error` instead. It waits for `delay_after_ms`,
    and answers. The connection is `cut` before the work, or before or after the answer.

    `where` the error is: of the whole "request", or of the "partitions" that are named here, while
    the others are served. The default is "partitions" if there is a topic or a partition. Only
    requests whose answer has a place for it fail then.

    A fault that does nothing of this counts requests.
    """

    def __post_init__(self) -> None:
        """Raise ValueError for a value that has no meaning, or has another type."""
        try:
            msgspec.convert(msgspec.structs.asdict(self), _Fields)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        _member(ApiKey, self.api)
        _member(ErrorCode, self.error)
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability is {self.probability}, not between 0 and 1")
        for name in ("after", "times", "partition", "delay_before_ms", "delay_after_ms"):
            if (getattr(self, name) or 0) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}, which is negative")
        for name in ("delay_before_ms", "delay_after_ms"):
            if getattr(self, name) > MAX_DURATION_MS:
                raise ValueError(f"{name} is {getattr(self, name)}, more than {MAX_DURATION_MS}")

    @property
    def api_key(self) -> ApiKey | None:
        """`api`, which may be a name."""
        return _member(ApiKey, self.api)

    @property
    def error_code(self) -> ErrorCode | None:
        """`error`, which may be a name."""
        return _member(ErrorCode, self.error)

    @property
    def names_places(self) -> bool:
        """Whether it belongs to a topic or a partition."""
        return self.topic is not None or self.partition is not None

    @property
    def fails_partitions(self) -> bool:
        """Whether its error is that of partitions."""
        where = self.where or ("partitions" if self.names_places else "request")
        return self.error is not None and where == "partitions"

    @property
    def fails_request(self) -> bool:
        """Whether no other fault can change the answer."""
        return self.cut is not None or (self.error is not None and not self.fails_partitions)


class FaultEvent(Struct, frozen=True):
    """A request that a fault has changed.

    `fault`: its index in the script. `match`: the number of the request among those
    that the fault matches, 1 for the first.
    """

    fault: int
    match: int
    api: ApiKey
    node: int
    client_id: str | None


def _member(declared: type[E], value: E | str | None) -> E | None:
    """The member of an enumeration with a name. Raises ValueError."""
    if not isinstance(value, str):
        return value
    try:
        return declared[value]
    except KeyError:
        raise ValueError(f"there is no {declared.__name__} {value}") from None
