"""The levels of the broker's own loggers, under the names that Kafka's tools know (KIP-412).

They are looked at and changed while the broker runs, and forgotten when it ends. Kafka's `root`
stands for the one above all of ours. Kafka: RuntimeLoggerManager, LoggingController.
"""

import logging
from collections.abc import Sequence

from odradek.coordinator.metadata.config_changes import AlterOperation, ConfigChange
from odradek.protocol.errors import ApiError, ErrorCode

OUR_LOGGERS = "odradek"
ROOT = "root"
LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}


def levels() -> dict[str, str]:
    """The level that counts for each logger, by name."""
    loggers = logging.root.manager.loggerDict
    ours = {
        name: logger
        for name, logger in loggers.items()
        if isinstance(logger, logging.Logger) and name.partition(".")[0] == OUR_LOGGERS
    }
    named = {ROOT: logging.getLogger(OUR_LOGGERS), **dict(sorted(ours.items()))}
    return {name: _level_name(logger.getEffectiveLevel()) for name, logger in named.items()}


def _level_name(level: int) -> str:
    """The name of a level, or of the next one below it."""
    return next((name for name, least in reversed(LEVELS.items()) if level >= least), "TRACE")


def check_levels(changes: Sequence[ConfigChange]) -> None:
    """Raises INVALID_CONFIG, INVALID_REQUEST for the first change that can't be."""
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
        if change.operation == AlterOperation.DELETE and change.name == ROOT:
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
    """Set levels, or (DELETE) let a logger have that of the one above it again."""
    for change in changes:
        logger = logging.getLogger(OUR_LOGGERS if change.name == ROOT else change.name)
        is_set = change.operation == AlterOperation.SET
        logger.setLevel(LEVELS[change.value or ""] if is_set else logging.NOTSET)
