"""Defines a configuration key: its name, type, default, allowed values, and one line of help.

A key that odradek uses is a field of a pydantic model (`log.segment.bytes` is `log_segment_bytes`),
and `keys_of` makes its `Key` from the field. A key that Kafka has but odradek does not use is a row
of a table in unused_*.py. Such a key is checked and described, and a warning says that it has no
effect. When odradek begins to use a key, it moves from the table to a model.

Values are written as text. The text follows Java's rules, not Python's or pydantic's: `1_000` is
not an integer, `TRUE` is true, a list is separated by commas, and whitespace around a value is
ignored.

Kafka: org.apache.kafka.common.config.ConfigDef (parseType, convertToString, Range, ValidList).
"""

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.fields import FieldInfo

from .errors import ConfigError, invalid_value
from .java_text import double_text

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
HIDDEN = "[hidden]"

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class ConfigType(IntEnum):
    """The types of configuration values. On the wire (DescribeConfigs): never renumber."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


Bool = Annotated[bool, ConfigType.BOOLEAN]
Int = Annotated[int, ConfigType.INT]
OptionalInt = Annotated[int | None, ConfigType.INT]
Short = Annotated[int, ConfigType.SHORT]
Long = Annotated[int, ConfigType.LONG]
OptionalLong = Annotated[int | None, ConfigType.LONG]
Double = Annotated[float, ConfigType.DOUBLE]
Text = Annotated[str, ConfigType.STRING]
OptionalText = Annotated[str | None, ConfigType.STRING]
OptionalPassword = Annotated[str | None, ConfigType.PASSWORD, Field(repr=False)]
Csv = Annotated[tuple[str, ...], ConfigType.LIST]
OptionalCsv = Annotated[tuple[str, ...] | None, ConfigType.LIST]

# For an annotation with choices: the value may be written in any case; it becomes lower case.
ANY_CASE = BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)

_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_COMMA = re.compile(r"[ \t\n\v\f\r]*,[ \t\n\v\f\r]*")
_JAVA_BLANKS = "".join(map(chr, range(33)))  # the characters that String.trim() removes
_REPLICAS = re.compile(r"\*|[0-9]+:[0-9]+(,[0-9]+:[0-9]+)*|")


class Key(NamedTuple):
    """One key.

    A number must be at least `ge` and at most `le`. A text, or each item of a list, must be one of
    `one_of`. `internal` keys are not shown unless they are set.
    """

    name: str
    type: ConfigType
    default: Value
    doc: str
    ge: float | None = None
    le: float | None = None
    one_of: tuple[str | int, ...] = ()
    any_case: bool = False
    not_empty: bool = False
    internal: bool = False

    @property
    def is_sensitive(self) -> bool:
        """Whether the value is a secret: it must not be logged or sent to clients."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Value:
        """Parse a text. Raises ConfigError if it is not a valid value of this key."""
        text = text.strip(_JAVA_BLANKS)
        try:
            value = _parse(self.type, text)
        except ValueError:
            raise self._refusal(text) from None
        if not self._allows(value):
            raise self._refusal(text)
        return value

    def render(self, value: Value) -> str | None:
        """Return a value as the text that Kafka reports. Returns None for None."""
        match value:
            case bool():
                return "true" if value else "false"
            case float():
                return double_text(value)
            case tuple():
                return ",".join(value)
            case None:
                return None
        return str(value)

    def _refusal(self, text: str) -> ConfigError:
        return invalid_value(self.name, HIDDEN if self.is_sensitive else text, self.allowed)

    def _allows(self, value: Value) -> bool:
        if isinstance(value, tuple):
            return self._allows_items(value)
        if self.not_empty and value == "":
            return False
        if self.one_of:
            return (value.lower() if self.any_case and isinstance(value, str) else value) in (
                self.one_of
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            return True
        low, high = self._bounds()
        return (low is None or value >= low) and (high is None or value <= high)

    def _allows_items(self, items: tuple[str, ...]) -> bool:
        if self.name.endswith(".replication.throttled.replicas"):
            return _REPLICAS.fullmatch(",".join(items)) is not None
        if not all(items) or (self.not_empty and not items):
            return False
        return not self.one_of or all(item in self.one_of for item in items)

    def _bounds(self) -> tuple[float | None, float | None]:
        bits = _BITS.get(self.type)
        if bits is None:
            return self.ge, self.le
        low = -(1 << bits - 1) if self.ge is None else self.ge
        return low, (1 << bits - 1) - 1 if self.le is None else self.le

    @property
    def allowed(self) -> str:
        """A description of the valid values, to follow the key in a message: "must be …"."""
        if self.name.endswith(".replication.throttled.replicas"):
            return "must be * or a list of partition:broker"
        choice = ", ".join(map(str, self.one_of))
        match self.type:
            case ConfigType.BOOLEAN:
                return "must be true or false"
            case ConfigType.LIST:
                least = "one or more" if self.not_empty else "any"
                items = choice or "non-empty items"
                return f"must be a comma-separated list of {least} of: {items}"
            case _ if choice:
                return f"must be one of: {choice}"
            case ConfigType.DOUBLE:
                return "must be a number" + _range(self.ge, self.le)
            case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
                return "must be a whole number" + _range(*self._bounds())
        return "must not be empty" if self.not_empty else "must be a text"


def _range(low: float | None, high: float | None) -> str:
    return ("" if low is None else f" from {low}") + ("" if high is None else f" to {high}")


def _parse(type_: ConfigType, text: str) -> Value:
    match type_:
        case ConfigType.BOOLEAN:
            if (lower := text.lower()) not in ("true", "false"):
                raise ValueError
            return lower == "true"
        case ConfigType.SHORT | ConfigType.INT | ConfigType.LONG:
            if not _WHOLE_NUMBER.fullmatch(text) or len(text) > 20:
                raise ValueError
            return int(text)
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise ValueError
            return float(text.rstrip("dDfF"))
        case ConfigType.LIST:
            # As in Kafka, duplicates are dropped.
            return tuple(dict.fromkeys(_COMMA.split(text))) if text else ()
    return text


class KeyModel(BaseModel):
    """The base of models whose fields are keys. Only final models build their validator."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """The fields to show: secrets are hidden."""
        secrets = {
            field_name(name) for name, key in keys_of(type(self)).items() if key.is_sensitive
        }
        for name, value in super().__repr_args__():
            yield name, HIDDEN if name in secrets and value is not None else value


def key(
    default: Value,
    doc: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    not_empty: bool = False,
    internal: bool = False,
) -> Any:
    """Declare a field of a KeyModel. The type and the choices come from the field's annotation."""
    return Field(
        default=default,
        description=doc,
        ge=ge,
        le=le,
        min_length=1 if not_empty else None,
        json_schema_extra={"internal": True} if internal else None,
    )


def field_name(key_name: str) -> str:
    """`log.segment.bytes` -> `log_segment_bytes`. No key of Kafka's has an underscore."""
    return key_name.replace(".", "_")


def keys_of(model: type[BaseModel]) -> dict[str, Key]:
    """The keys declared in a model, by name, in the order of declaration."""
    found = {}
    for name, info in model.model_fields.items():
        types = [item for item in info.metadata if isinstance(item, ConfigType)]
        if types:
            key_name = name.replace("_", ".")
            found[key_name] = _key_of_field(key_name, types[0], info)
    return found


def _key_of_field(name: str, type_: ConfigType, info: FieldInfo) -> Key:
    rules: dict[str, Any] = {}
    for item in info.metadata:
        for rule in ("ge", "le", "min_length"):
            if (bound := getattr(item, rule, None)) is not None:
                rules[rule] = bound
    return Key(
        name=name,
        type=type_,
        default=info.default,
        doc=info.description or "",
        ge=rules.get("ge"),
        le=rules.get("le"),
        one_of=_choices(info.annotation),
        any_case=ANY_CASE in info.metadata,
        not_empty="min_length" in rules,
        internal=bool(info.json_schema_extra),
    )


def _choices(annotation: object) -> tuple[str | int, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    for argument in get_args(annotation):
        if get_origin(argument) is Literal:
            return get_args(argument)
    return ()


def parse_all(keys: Mapping[str, Key], texts: Mapping[str, str]) -> dict[str, Value]:
    """Parse the texts whose name is in `keys`, by name. Raises ConfigError."""
    return {name: keys[name].parse(text) for name, text in texts.items() if name in keys}
