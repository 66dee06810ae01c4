"""What Apache Kafka reads in metadata files: MetadataImages.java, run from its source."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.java_tools import JAVA_TOOLS, JavaTools

PROGRAM = Path(__file__).with_name("MetadataImages.java")
LIMIT_SECONDS = 60.0


def kafkas_images(jobs: Sequence[str], tools: JavaTools = JAVA_TOOLS) -> list[list[str]]:
    """Of each job (`FILE,FILE@END_OFFSET,...`) the records of the image, as JSON."""
    done = subprocess.run(
        [*tools.java(), str(PROGRAM), *jobs],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [part.splitlines() for part in done.stdout.split("=\n")[1:]]
