"""The exceptions of the matrix: answers that may differ from Kafka's, and why.

- The message of a refused operation on the cluster (`without_request`).
- A topic that a Metadata request creates (`created_later`).
- CreateAcls with the code ANY or MATCH in an entry. Kafka fails inside, and answers every entry of
  the request with UNKNOWN_SERVER_ERROR; odradek refuses the entry with INVALID_REQUEST, as Kafka's
  controller would. acl_requests.py does not ask for it.

What may differ in the answers of both brokers whatever is authorized (drawn ids, the order of hash
tables, ports, times) is in plain.py and in tests/conformance/transcript.py.
"""

import re
from typing import Any

from odradek.protocol.errors import ErrorCode

_WHOLE_REQUEST = re.compile(r"^Request .* (needs \w+ permission\.)$", re.DOTALL)
_CREATED = (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def without_request(message: str) -> str:
    """The message without the request that it shows.

    Kafka shows the request as the broker holds it in memory, with addresses of objects. The end,
    which says what operation is needed, must be equal.
    """
    return _WHOLE_REQUEST.sub(r"\1", message)


def created_later(answer: Any) -> Any:
    """The topics of a Metadata response; one that is going to be created counts as created.

    Kafka answers before it has created a topic. odradek creates it first.
    """
    return [
        {"name": topic.name, "error_code": 0 if topic.error_code in _CREATED else topic.error_code}
        for topic in answer.topics
    ]
