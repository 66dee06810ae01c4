"""The levels of the broker's loggers, with the level names of Kafka's tools (KIP-412).

They can be read and changed while the broker runs. They are not stored. The name `root` means the
logger `odradek`, the parent of all others. Kafka: RuntimeLoggerManager, LoggingController.
"""

import logging
from collections.abc import Sequence

from odradek.coordinator.metadata.config_changes import AlterOperation, ConfigChange
from odradek.protocol.errors import ApiError, ErrorCode

logger = logging.getLogger("odradek.config")

TOP_LOGGER = "odradek"
ROOT = "root"
LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """The effective level of each logger, by name."""
    loggers = logging.root.manager.loggerDict
    own = {
        name: each
        for name, each in loggers.items()
        if isinstance(each, logging.Logger) and name.partition(".")[0] == TOP_LOGGER
    }
    named = {ROOT: logging.getLogger(TOP_LOGGER), **dict(sorted(own.items()))}
    return {name: _level_name(each.getEffectiveLevel()) for name, each in named.items()}


def _level_name(level: int) -> str:
    """The name of a level, or of the next lower level that has a name."""
    return next((name for name, least in reversed(LEVELS.items()) if level >= least), "TRACE")


def check_levels(changes: Sequence[ConfigChange]) -> None:
    """Check changes. Raises INVALID_CONFIG or INVALID_REQUEST for the first that is not valid."""
    known = levels()
    for change in changes:
        if change.operation not in (AlterOperation.SET, AlterOperation.DELETE):
            raise ApiError(ErrorCode.INVALID_REQUEST, _unknown_operation(change.operation))
        if change.name not in known:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
        if change.operation == AlterOperation.SET and change.value not in LEVELS:
            raise ApiError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {change.name} to {change.value} as it is not a "
                f"supported log level. Valid log levels are {', '.join(sorted(LEVELS))}",
            )
        if change.operation == AlterOperation.DELETE and change.name in (ROOT, TOP_LOGGER):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )


def _unknown_operation(operation: int) -> str:
    if operation in AlterOperation.__members__.values():
        name = AlterOperation(operation).name
        return f"{name} operation is not allowed for the BROKER_LOGGER resource"
    return f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"


def change_levels(changes: Sequence[ConfigChange]) -> None:
    """Set levels; DELETE makes a logger inherit its parent's level again."""
    for change in changes:
        changed = logging.getLogger(TOP_LOGGER if change.name == ROOT else change.name)
        is_set = change.operation == AlterOperation.SET
        changed.setLevel(LEVELS[change.value or ""] if is_set else logging.NOTSET)
    changed_levels = (f"{change.name}={change.value}" for change in changes)
    logger.warning("log levels: %s", ", ".join(changed_levels))


def reset_levels(level: int) -> None:
    """Let all loggers have this level: the top one its own, the others their parent's."""
    for name in levels():
        each = logging.getLogger(TOP_LOGGER if name == ROOT else name)
        wanted = level if each.name == TOP_LOGGER else logging.NOTSET
        if each.level != wanted:
            each.setLevel(wanted)
