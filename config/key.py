"""Defines a configuration key: its name, type, default, allowed values, and one line of help.

A key that odradek uses is a field of a `KeyModel` (`log.segment.bytes` is `log_segment_bytes`), and
the model makes its `Key` from the field. A key that Kafka has but odradek does not use is a row of
a table in unused_*.py. Such a key is checked and described, and a warning says that it has no
effect. When odradek begins to use a key, it moves from the table to a model.

Values are written as text. The text follows Java's rules, not Python's: `1_000` is not an integer,
`TRUE` is true, a list is separated by commas, and whitespace around a value is ignored.

Kafka: org.apache.kafka.common.config.ConfigDef (parseType, convertToString, Range, ValidList).
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    NoReturn,
    Self,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_origin,
)

from .errors import ConfigError, invalid_value
from .java_text import JAVA_BLANKS, double_text, parse_integer

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
OptionalPassword = Annotated[str | None, ConfigType.PASSWORD]
Csv = Annotated[tuple[str, ...], ConfigType.LIST]
OptionalCsv = Annotated[tuple[str, ...] | None, ConfigType.LIST]

# For an annotation with choices: a value may be written in any case. Models have it in lower case.
ANY_CASE = "any case"

_CLASSES: Mapping[ConfigType, tuple[type, ...]] = {
    ConfigType.BOOLEAN: (bool,),
    ConfigType.INT: (int,),
    ConfigType.SHORT: (int,),
    ConfigType.LONG: (int,),
    ConfigType.DOUBLE: (float, int),
    ConfigType.LIST: (tuple,),
}
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_BLANKS = " \t\n\v\f\r"  # \s of a Java pattern
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
        text = text.strip(JAVA_BLANKS)
        try:
            value = _parse(self.type, text)
        except ValueError:
            raise self._refusal(text) from None
        if not self._allows(value):
            raise self._refusal(text)
        return value

    def checked(self, value: Value) -> Value:
        """Return a value as a KeyModel has it. Raises ConfigError if this key cannot have it.

        None is allowed if it is the default.
        """
        if value is None and self.default is None:
            return None
        if type(value) not in _CLASSES.get(self.type, (str,)) or not self._allows(value):
            raise self._refusal(value)
        if self.any_case and isinstance(value, str):
            return value.lower()
        return float(value) if isinstance(value, int) and self.type is ConfigType.DOUBLE else value

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

    def _refusal(self, value: Value) -> ConfigError:
        return invalid_value(self.name, HIDDEN if self.is_sensitive else value, self.allowed)

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
            return parse_integer(text, _BITS[type_])
        case ConfigType.DOUBLE:
            if not _DOUBLE.fullmatch(text):
                raise ValueError
            return float(text.rstrip("dDfF"))
        case ConfigType.LIST:
            # As in Kafka, duplicates are dropped.
            items = [item.strip(_BLANKS) for item in text.split(",")]
            return tuple(dict.fromkeys(items)) if text else ()
    return text


def key(
    default: Value,
    doc: str,
    *,
    ge: float | None = None,
    le: float | None = None,
    not_empty: bool = False,
    internal: bool = False,
) -> Any:
    """Declare a field of a KeyModel. The name, the type and the choices come from the field."""
    return Key(
        "",
        ConfigType.STRING,
        default,
        doc,
        ge=ge,
        le=le,
        not_empty=not_empty,
        internal=internal,
    )


@dataclass_transform(kw_only_default=True, frozen_default=True)
class KeyModel:
    """The base of models whose fields are keys: immutable, made from values by field name.

    A model may also have fields that are not keys; these are not checked. It is not a dataclass,
    because one with the fields of the broker takes 6 ms to make: a twentieth of a start.
    """

    keys: ClassVar[Mapping[str, Key]] = {}
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        bases = [base for base in reversed(cls.__mro__[1:]) if issubclass(base, KeyModel)]
        keys = {name: key for base in bases for name, key in base.keys.items()}
        defaults = {name: value for base in bases for name, value in base._defaults.items()}
        for name, annotation in cls.__annotations__.items():
            value = cls.__dict__[name]
            if isinstance(value, Key):
                complete = _completed(value, name.replace("_", "."), annotation)
                keys[complete.name], value = complete, complete.default
                setattr(cls, name, value)
            defaults[name] = value
        cls.keys, cls._defaults = keys, defaults

    def __init__(self, **values: Any) -> None:
        """Raises ConfigError for a value that is not allowed, TypeError for an unknown field."""
        fields = self.__dict__
        fields |= self._defaults
        for name, value in values.items():
            if name not in self._defaults:
                raise TypeError(f"{type(self).__name__} has no field {name}")
            key = self.keys.get(name.replace("_", "."))
            fields[name] = value if key is None else key.checked(value)
        # The names of the fields that were given: the others have their defaults.
        self.given: frozenset[str]
        fields["given"] = frozenset(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Raise ConfigError if the values contradict each other."""

    def replace(self, **values: Any) -> Self:
        """Return a copy with other values of some fields. Raises ConfigError."""
        return type(self)(**{name: getattr(self, name) for name in self.given} | values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be changed")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self._defaults
        )

    def __repr__(self) -> str:
        shown = (f"{field_name(key.name)}={self._shown(key)}" for key in self.keys.values())
        return f"{type(self).__name__}({', '.join(shown)})"

    def _shown(self, key: Key) -> str:
        value = getattr(self, field_name(key.name))
        return repr(HIDDEN if key.is_sensitive and value is not None else value)


def _completed(key: Key, name: str, annotation: object) -> Key:
    _, *marks = get_args(annotation)
    (type_,) = (mark for mark in marks if isinstance(mark, ConfigType))
    return key._replace(
        name=name, type=type_, one_of=_choices(annotation), any_case=ANY_CASE in marks
    )


def _choices(annotation: object) -> tuple[str | int, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    for argument in get_args(annotation):
        if choices := _choices(argument):
            return choices
    return ()


def field_name(key_name: str) -> str:
    """`log.segment.bytes` -> `log_segment_bytes`. No key of Kafka's has an underscore."""
    return key_name.replace(".", "_")


def parse_all(keys: Mapping[str, Key], texts: Mapping[str, str]) -> dict[str, Value]:
    """Parse the texts whose name is in `keys`, by name. Raises ConfigError."""
    return {name: keys[name].parse(text) for name, text in texts.items() if name in keys}
