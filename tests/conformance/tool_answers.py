"""What one of Kafka's tools says of a broker, as lines that can be compared.

What must differ is named away: random ids, ports, and the frames of stack traces, which depend on
timing. The order of lines is that of Java's hash tables in part, so they are compared sorted.
"""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.support.broker_process import BrokerProcess
from tests.support.warm_tools import WarmTools

DRAWN = re.compile(
    r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # a classic member's
    r"|(?<!\S)(?=\S*[A-Z0-9])[\w-]{22}(?!\S)"  # the same, in a consumer group
    r"|(?<=adminclient-)\d+"
)
FRAME = re.compile(r"^\s+at |^\s+\.\.\. \d+ more")


def told(broker: BrokerProcess, lines: Sequence[tuple[str, ...]], scratch: Path) -> list[list[str]]:
    """What a broker's tools say to each line of a tool and its arguments.

    `scratch` is the directory of the files that the arguments name.
    """
    answers = []
    with WarmTools() as tools:
        for words in lines:
            tool, *arguments = words
            code, output = tools.run(tool, "--bootstrap-server", broker.bootstrap, *arguments)
            plain = DRAWN.sub("DRAWN", output).replace(f":{broker.port}", ":PORT")
            plain = plain.replace(str(scratch), "SCRATCH")
            kept = [in_order(one) for one in plain.splitlines() if not FRAME.match(one)]
            answers.append([f"exit {code}", *sorted(kept)])
    return answers


def in_order(line: str) -> str:
    """The line with single spaces; names that the tool takes from a Java set are sorted."""
    head, told, names = line.partition(": ")
    if head.endswith((" are", "options", "scenarios")):
        return head + told + ", ".join(sorted(name.strip("[]") for name in names.split(", ")))
    return " ".join(line.split())


def differences(
    lines: Sequence[tuple[str, ...]], expected: list[list[str]], found: list[list[str]]
) -> list[str]:
    """A text for each line to which the tools said something else of odradek than of Kafka."""
    return [
        f"{' '.join(words)}\nKafka:   {_only(theirs, ours)}\nodradek: {_only(ours, theirs)}"
        for words, theirs, ours in zip(lines, expected, found, strict=True)
        if theirs != ours
    ]


def _only(these: list[str], those: list[str]) -> list[str]:
    """The lines that are among these alone."""
    return list((Counter(these) - Counter(those)).elements())
