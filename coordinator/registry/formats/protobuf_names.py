"""Which type a name in a .proto file means.

A name that begins with a dot is a full name. Another one is looked for in the message that it is
in, then in the enclosing ones, then in the package and the packages around it: the first that has
it counts. Types of imported files are in the same table: names mean them in the same way.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from .effort import spend
from .protobuf_file import Enum, Field, File, Message

# Types of the files that every Protobuf compiler and Confluent's registry have.
_KNOWN_MESSAGES = {
    "google.protobuf": (
        "Any Api Method Mixin Duration Empty FieldMask SourceContext Struct Value ListValue"
        " Timestamp Type Field EnumValue Option DoubleValue FloatValue Int64Value UInt64Value"
        " Int32Value UInt32Value BoolValue StringValue BytesValue Enum FileDescriptorSet"
        " FileDescriptorProto DescriptorProto DescriptorProto.ExtensionRange"
        " DescriptorProto.ReservedRange ExtensionRangeOptions ExtensionRangeOptions.Declaration"
        " FieldDescriptorProto OneofDescriptorProto EnumDescriptorProto"
        " EnumDescriptorProto.EnumReservedRange EnumValueDescriptorProto ServiceDescriptorProto"
        " MethodDescriptorProto FileOptions MessageOptions FieldOptions FieldOptions.EditionDefault"
        " FieldOptions.FeatureSupport OneofOptions EnumOptions EnumValueOptions ServiceOptions"
        " MethodOptions UninterpretedOption UninterpretedOption.NamePart FeatureSet"
        " FeatureSet.VisibilityFeature FeatureSet.ProtoLimitsFeature FeatureSetDefaults"
        " FeatureSetDefaults.FeatureSetEditionDefault SourceCodeInfo SourceCodeInfo.Location"
        " GeneratedCodeInfo GeneratedCodeInfo.Annotation"
    ),
    "google.type": (
        "Color Date DateTime TimeZone Decimal Expr Fraction Interval LatLng LocalizedText Money"
        " PhoneNumber PhoneNumber.ShortCode PostalAddress Quaternion TimeOfDay"
    ),
    "confluent": "Meta Rule",
    "confluent.type": "Decimal Variant",
}
_KNOWN_ENUMS = {
    "google.protobuf": (
        "NullValue Syntax Field.Kind Field.Cardinality FieldDescriptorProto.Type"
        " FieldDescriptorProto.Label ExtensionRangeOptions.VerificationState"
        " FileOptions.OptimizeMode FieldOptions.CType FieldOptions.JSType"
        " FieldOptions.OptionRetention FieldOptions.OptionTargetType MethodOptions.IdempotencyLevel"
        " FeatureSet.FieldPresence FeatureSet.EnumType FeatureSet.RepeatedFieldEncoding"
        " FeatureSet.Utf8Validation FeatureSet.MessageEncoding FeatureSet.JsonFormat"
        " FeatureSet.EnforceNamingStyle FeatureSet.VisibilityFeature.DefaultSymbolVisibility"
        " FeatureSet.ProtoLimitsFeature.EnforceProtoLimits GeneratedCodeInfo.Annotation.Semantic"
        " Edition SymbolVisibility"
    ),
    "google.type": "CalendarPeriod DayOfWeek Month",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """A type and the package of its file; `declaration` is None for a known type."""

    package: str
    declaration: Message | Enum | None
    is_enum: bool
    file: str  # the name of the reference; empty for the schema itself

    @property
    def map_type(self) -> str | None:
        """`map<…>` if it is the message that compilers make of a map's entries."""
        message = self.declaration
        if not isinstance(message, Message):
            return None
        if not any(o.name == "map_entry" and o.value is True for o in message.options):
            return None
        types = {member.name: member.type for member in message.fields}
        return f"map<{types.get('key')}, {types.get('value')}>"


def _known() -> Iterator[tuple[str, Definition]]:
    for is_enum, table in ((False, _KNOWN_MESSAGES), (True, _KNOWN_ENUMS)):
        for package, names in table.items():
            for name in names.split():
                yield f"{package}.{name}", Definition(package, None, is_enum, "")


_KNOWN = dict(_known())
_V = TypeVar("_V")


class Names:
    """The types, and the extensions, that the names in one schema can mean."""

    def __init__(self, schema: File, imports: Mapping[str, File]) -> None:
        self.package = schema.package
        self.types: dict[str, Definition] = dict(_KNOWN)
        self.extensions: dict[str, Field] = {}
        for name, file in (*imports.items(), ("", schema)):
            self._add_file(name, file)

    def _add_file(self, name: str, file: File) -> None:
        prefix = f"{file.package}." if file.package else ""
        for enum in file.enums:
            self.types[prefix + enum.name] = Definition(file.package, enum, True, name)
        for extend in file.extends:
            self.extensions.update((prefix + member.name, member) for member in extend.fields)
        for message in file.messages:
            self._add_message(name, file.package, prefix, message)

    def _add_message(self, name: str, package: str, prefix: str, message: Message) -> None:
        full = prefix + message.name
        self.types[full] = Definition(package, message, False, name)
        for enum in message.enums:
            self.types[f"{full}.{enum.name}"] = Definition(package, enum, True, name)
        for extend in message.extends:
            self.extensions.update((f"{full}.{f.name}", f) for f in extend.fields)
        groups = [*message.groups, *(g for oneof in message.oneofs for g in oneof.groups)]
        for inner in (*message.messages, *(group.message for group in groups)):
            self._add_message(name, package, f"{full}.", inner)

    def type_named(
        self, name: str, inside: tuple[str, ...], package: str | None = None
    ) -> tuple[str, Definition] | None:
        """Return the full name and the type that a name means inside messages of a package."""
        return _lookup(self.types.get, name, inside, self.package if package is None else package)

    def extension_named(self, name: str, inside: tuple[str, ...]) -> str | None:
        found = _lookup(self.extensions.get, name, inside, self.package)
        return found[0] if found else None


def _lookup(
    get: Callable[[str], _V | None], name: str, inside: tuple[str, ...], package: str
) -> tuple[str, _V] | None:
    if name.startswith("."):
        found = get(name[1:])
        return None if found is None else (name[1:], found)
    scope = [*(package.split(".") if package else ()), *inside]
    while True:
        spend(1 + len(scope))
        full = ".".join((*scope, name))
        found = get(full)
        if found is not None:
            return full, found
        if not scope:
            return None
        scope.pop()
