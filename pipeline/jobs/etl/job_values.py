"""Types of values in a job file, validated with pydantic."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

_AMOUNT = r"\d+ +(?:millisecond|second|minute|hour|day|week)s?"
_DURATION = re.compile(rf"{_AMOUNT}(?: +{_AMOUNT})*")
# Options of from_json that decoding.py sets itself.
_RESERVED_OPTIONS = frozenset({"mode", "columnnameofcorruptrecord", "multiline", "samplingratio"})


def invalid(text: str) -> PydanticCustomError:
    """Return the error that a validator raises, with exactly this text."""
    return PydanticCustomError("invalid", "{text}", {"text": text})


class Section(BaseModel):
    """A mapping in the file. The error for an unknown key lists the known ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, data: Any) -> Any:  # any YAML value
        _check_keys(data, tuple(cls.model_fields))
        return data


@dataclass(frozen=True, slots=True)
class DecodingSpec:
    """How bytes are decoded; for JSON, the schema in Spark's syntax and options of from_json."""

    kind: Literal["binary", "string", "json"] = "binary"
    ddl: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TriggerSpec:
    """How often a batch runs. If `every` is None, one run reads all existing records and ends."""

    every: str | None = None


def _check_keys(data: Any, known: tuple[str, ...]) -> None:  # any YAML value
    if not isinstance(data, dict):
        raise invalid(f"must be a mapping with {', '.join(known)}")
    for key in data:
        if key not in known:
            text = "unknown key; known keys are {known}"
            raise PydanticCustomError(
                "unknown_key", text, {"key": str(key), "known": ", ".join(known)}
            )


def _texts(data: Any) -> Any:  # any YAML value
    """Convert options to text; values that are not text become JSON."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise invalid("must be a mapping of names to values")
    texts: dict[str, str] = {}
    for name, value in data.items():
        if value is None:
            raise invalid(f"{name} has no value")
        texts[str(name)] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _duration(data: Any) -> Any:  # any YAML value
    if not isinstance(data, str) or not _DURATION.fullmatch(data):
        raise invalid(f"must be a duration such as 10 seconds, not {data!r}")
    return data


def _decoding(data: Any) -> Any:  # any YAML value
    if isinstance(data, DecodingSpec):
        return data
    if data in ("binary", "string"):
        return DecodingSpec(data)
    if not isinstance(data, dict):
        raise invalid("must be binary, string, or json: with a schema such as 'id long, at date'")
    _check_keys(data, ("json", "options"))
    schema = data.get("json")
    if not isinstance(schema, str) or not schema.strip():
        raise invalid("json must be a schema such as 'id long, at timestamp'")
    options = _texts(data.get("options"))
    reserved = [name for name in options if name.lower() in _RESERVED_OPTIONS]
    if reserved:
        raise invalid(f"options: {reserved[0]} cannot be set; see on_bad_record")
    return DecodingSpec("json", schema, options)


def _trigger(data: Any) -> Any:  # any YAML value
    if isinstance(data, TriggerSpec):
        return data
    if data == "available-now":
        return TriggerSpec()
    if not isinstance(data, dict):
        raise invalid("must be available-now, or every: with a duration such as 10 seconds")
    _check_keys(data, ("every",))
    return TriggerSpec(_duration(data.get("every")))


Texts = Annotated[Mapping[str, str], BeforeValidator(_texts)]
Duration = Annotated[str, BeforeValidator(_duration)]
Decoding = Annotated[DecodingSpec, BeforeValidator(_decoding)]
Trigger = Annotated[TriggerSpec, BeforeValidator(_trigger)]
BINARY = DecodingSpec()
