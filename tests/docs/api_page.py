"""The page of Kafka's APIs and the versions that are served."""

from odradek.broker.handlers import HANDLERS
from odradek.broker.requests.dispatch import served_versions
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.schema import VersionRange
from tests.docs.markdown import table

INTRODUCTION = """\
# APIs and versions

The requests of Kafka 4.4 that odradek serves. *Announced* versions are in the answer to
ApiVersions; a few older ones are decoded, too, for [clients of Kafka 0.8 to
0.10](differences.md#clients-and-requests). A request for any other API closes the connection, as
in Kafka.
"""


def api_page() -> str:
    """The served APIs with their versions, and the names of the others."""
    served = served_versions(HANDLERS)
    rows = [
        (
            str(key.value),
            key.display_name,
            _range(served.advertised[key]),
            _range(served.accepted[key]),
        )
        for key in sorted(HANDLERS)
    ]
    others = ", ".join(f"{key.display_name} ({key.value})" for key in ApiKey if key not in HANDLERS)
    return "\n".join(
        [
            INTRODUCTION,
            f"## Served: {len(rows)} APIs\n",
            table(("key", "API", "announced", "decoded"), rows),
            "## Not served\n",
            "Some of these pass between the nodes of a cluster, which odradek does not form.\n"
            "The others are served by controllers of a cluster only.\n",
            f"{others}.\n",
        ]
    )


def _range(versions: VersionRange) -> str:
    lowest, highest = versions.lowest, versions.highest
    return str(lowest) if lowest == highest else f"{lowest} to {highest}"
