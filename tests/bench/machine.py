"""The machine that measures, and what else it does."""

import os
import platform
import re
import subprocess
from pathlib import Path

from tests.support.java_tools import why_no_java
from tests.support.kafka_jars import BROKER_VERSION

LOAD = "load before"


def machine() -> dict[str, str]:
    """What the figures depend on, by name."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": f"{len(os.sched_getaffinity(0))} ({model[1] if model else platform.machine()})",
        "memory": f"{memory:.0f} GB",
        "kernel": ".".join(platform.release().split(".")[:2]),
        "Python": platform.python_version(),
        "Apache Kafka": why_no_java() or f"{BROKER_VERSION}, Java {_java_version()}",
        LOAD: " ".join(f"{each:.2f}" for each in os.getloadavg()),
    }


def _java_version() -> str:
    done = subprocess.run(["java", "-version"], check=True, capture_output=True, text=True)
    return done.stderr.split('"')[1]
