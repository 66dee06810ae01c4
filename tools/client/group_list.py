"""`odradek groups list`: the groups of all kinds.

librdkafka lists only those of consumers, so the brokers are asked without it.
"""

from __future__ import annotations

import re

from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.tools.tables import counted, show_rows

from .answers import check_answer
from .cluster_commands import ClusterCommands

_WORD = re.compile("(?<=[a-z])(?=[A-Z])")


class GroupList(ClusterCommands):
    """The command, on connections to all brokers."""

    def show(self, *, as_json: bool) -> None:
        """Print the groups with their type, protocol and state. Raises CommandError."""
        groups = []
        for broker in self._cluster.brokers():
            answer = broker.ask(ListGroupsRequest(), ListGroupsResponse)
            check_answer("the groups cannot be listed", answer.error_code)
            groups += answer.groups
        rows = sorted(
            (each.group_id, _text(each.group_type), each.protocol_type, _text(each.group_state))
            for each in groups
        )
        header = ("group", "type", "protocol", "state")
        show_rows(counted(len(rows), "group"), header, rows, as_json=as_json, texts=4)


def _text(name: str) -> str:
    """PreparingRebalance as preparing_rebalance. Older brokers do not send it."""
    return _WORD.sub("_", name).lower() or "unknown"
