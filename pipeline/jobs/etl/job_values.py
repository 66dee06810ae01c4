"""The kinds of values in a job file, as pydantic checks them."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic_core import PydanticCustomError

_PIECE = r"\d+ +(?:millisecond|second|minute|hour|day|week)s?"
_DURATION = re.compile(rf"{_PIECE}(?: +{_PIECE})*")
# What the decoding itself has to say.
_DECODINGS_OWN = frozenset({"mode", "columnnameofcorruptrecord", "multiline", "samplingratio"})


def wrong(text: str) -> PydanticCustomError:
    """An error that a validator raises: the text as it is."""
    return PydanticCustomError("wrong", "{text}", {"text": text})


class Part(BaseModel):
    """A mapping of the file. An unknown key is told together with those that there are."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, data: Any) -> Any:  # what YAML can be
        _check_keys(data, tuple(cls.model_fields))
        return data


@dataclass(frozen=True, slots=True)
class Decoded:
    """How bytes are read; of JSON, the schema in Spark's words and the options of from_json."""

    kind: Literal["binary", "string", "json"] = "binary"
    ddl: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Triggered:
    """How often a batch is made; None: until all that is there now has been read."""

    every: str | None = None


def _check_keys(data: Any, known: tuple[str, ...]) -> None:  # what YAML can be
    if not isinstance(data, dict):
        raise wrong(f"a mapping is needed, with {', '.join(known)}")
    for key in data:
        if key not in known:
            told = "unknown key; there are {known}"
            raise PydanticCustomError(
                "unknown_key", told, {"key": str(key), "known": ", ".join(known)}
            )


def _texts(data: Any) -> Any:  # what YAML can be
    """Options are texts: numbers, true and false are written out, lists and mappings as JSON."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise wrong("a mapping of names and values is needed")
    texts: dict[str, str] = {}
    for name, value in data.items():
        if value is None:
            raise wrong(f"{name} has no value")
        texts[str(name)] = value if isinstance(value, str) else json.dumps(value)
    return texts


def _duration(data: Any) -> Any:  # what YAML can be
    if not isinstance(data, str) or not _DURATION.fullmatch(data):
        raise wrong(f"a duration such as 10 seconds is needed, not {data!r}")
    return data


def _decoding(data: Any) -> Any:  # what YAML can be
    if isinstance(data, Decoded):
        return data
    if data in ("binary", "string"):
        return Decoded(data)
    if not isinstance(data, dict):
        raise wrong("binary, string, or json: with a schema such as 'id long, at timestamp'")
    _check_keys(data, ("json", "options"))
    schema = data.get("json")
    if not isinstance(schema, str) or not schema.strip():
        raise wrong("json needs a schema such as 'id long, at timestamp'")
    options = _texts(data.get("options"))
    taken = [name for name in options if name.lower() in _DECODINGS_OWN]
    if taken:
        raise wrong(f"options: {taken[0]} cannot be set: on_bad_record says what happens")
    return Decoded("json", schema, options)


def _trigger(data: Any) -> Any:  # what YAML can be
    if isinstance(data, Triggered):
        return data
    if data == "available-now":
        return Triggered()
    if not isinstance(data, dict):
        raise wrong("available-now, or every: with a duration such as 10 seconds")
    _check_keys(data, ("every",))
    return Triggered(_duration(data.get("every")))


Texts = Annotated[Mapping[str, str], BeforeValidator(_texts)]
Duration = Annotated[str, BeforeValidator(_duration)]
Decoding = Annotated[Decoded, BeforeValidator(_decoding)]
Trigger = Annotated[Triggered, BeforeValidator(_trigger)]
BINARY = Decoded()
AVAILABLE_NOW = Triggered()
