"""The errors that the registry answers with, by the codes of Confluent's Schema Registry.

The first three digits of a code are the status of the HTTP response. Clients compare the codes;
some tools search the texts too, so these are worded as Confluent's registry words them.
"""

from enum import IntEnum


class ErrorCode(IntEnum):
    """Numbers on the wire: never renumber."""

    SUBJECT_NOT_FOUND = 40401
    VERSION_NOT_FOUND = 40402
    SCHEMA_NOT_FOUND = 40403
    SUBJECT_SOFT_DELETED = 40404
    SUBJECT_NOT_SOFT_DELETED = 40405
    VERSION_SOFT_DELETED = 40406
    VERSION_NOT_SOFT_DELETED = 40407
    NO_SUBJECT_COMPATIBILITY = 40408
    NO_SUBJECT_MODE = 40409
    INCOMPATIBLE_SCHEMA = 40901
    INVALID_SCHEMA = 42201
    INVALID_VERSION = 42202
    INVALID_COMPATIBILITY_LEVEL = 42203
    INVALID_MODE = 42204
    OPERATION_NOT_PERMITTED = 42205
    REFERENCE_EXISTS = 42206
    INVALID_SUBJECT = 42208
    SCHEMA_TOO_LARGE = 42209
    INVALID_RULE_SET = 42210
    CONTEXT_NOT_EMPTY = 42211
    STORE_ERROR = 50001


class RegistryError(Exception):
    """A request that the registry refuses."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The status of the HTTP response."""
        return self.code // 100


class InvalidSchemaError(Exception):
    """A text that is not a schema of its type, or a reference that cannot be resolved."""


def subject_not_found(subject: str | None) -> RegistryError:
    return RegistryError(ErrorCode.SUBJECT_NOT_FOUND, f"Subject '{_or_null(subject)}' not found.")


def version_not_found(version: int) -> RegistryError:
    return RegistryError(ErrorCode.VERSION_NOT_FOUND, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RegistryError:
    named = "Schema not found" if schema_id is None else f"Schema {schema_id} not found"
    return RegistryError(ErrorCode.SCHEMA_NOT_FOUND, named)


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        ErrorCode.SUBJECT_SOFT_DELETED,
        f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently",
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        ErrorCode.SUBJECT_NOT_SOFT_DELETED,
        f"Subject '{subject}' was not deleted first before being permanently deleted",
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        ErrorCode.VERSION_SOFT_DELETED,
        f"Subject '{subject}' Version {version} was soft deleted."
        "Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        ErrorCode.VERSION_NOT_SOFT_DELETED,
        f"Subject '{subject}' Version {version} was not deleted first"
        " before being permanently deleted",
    )


def no_subject_compatibility(subject: str) -> RegistryError:
    return RegistryError(
        ErrorCode.NO_SUBJECT_COMPATIBILITY,
        f"Subject '{subject}' does not have subject-level compatibility configured",
    )


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(
        ErrorCode.NO_SUBJECT_MODE,
        f"Subject '{subject}' does not have subject-level mode configured",
    )


def incompatible(subject: str, reasons: list[str]) -> RegistryError:
    return RegistryError(
        ErrorCode.INCOMPATIBLE_SCHEMA,
        "Schema being registered is incompatible with an earlier schema for subject"
        f' "{subject}", details: [{", ".join(reasons)}]',
    )


def invalid_schema(detail: str) -> RegistryError:
    return RegistryError(ErrorCode.INVALID_SCHEMA, detail)


def invalid_version(version: object) -> RegistryError:
    return RegistryError(
        ErrorCode.INVALID_VERSION,
        f"The specified version '{version}' is not a valid version id."
        ' Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility_level() -> RegistryError:
    return RegistryError(
        ErrorCode.INVALID_COMPATIBILITY_LEVEL,
        "Invalid compatibility level. Valid values are none, backward, forward, full,"
        " backward_transitive, forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    return RegistryError(
        ErrorCode.INVALID_MODE,
        "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD.",
    )


def not_permitted(detail: str) -> RegistryError:
    return RegistryError(ErrorCode.OPERATION_NOT_PERMITTED, detail)


def reference_exists(subject: str, version: int) -> RegistryError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(
        ErrorCode.REFERENCE_EXISTS, f"One or more references exist to the schema {key}."
    )


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(
        ErrorCode.INVALID_SUBJECT, f"The specified subject '{subject}' is not a valid."
    )


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(
        ErrorCode.CONTEXT_NOT_EMPTY, f"The specified context '{context}' is not empty."
    )


def invalid_rule_set(detail: str) -> RegistryError:
    return RegistryError(ErrorCode.INVALID_RULE_SET, detail)


def _or_null(subject: str | None) -> str:
    return "null" if subject is None else subject
