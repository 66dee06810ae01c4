"""The table of all targets."""

from collections.abc import Mapping

from tests.fuzz import (
    file_targets,
    legacy_targets,
    message_targets,
    record_targets,
    telemetry_targets,
)
from tests.fuzz.target import Target

TARGETS: Mapping[str, Target] = {
    **message_targets.TARGETS,
    **record_targets.TARGETS,
    **legacy_targets.TARGETS,
    **file_targets.TARGETS,
    **telemetry_targets.TARGETS,
}
