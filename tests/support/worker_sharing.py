"""How `--dist loadfile` shares the tests between the workers of pytest-xdist.

A worker is given whole files. The tests that ask for the Spark session are the exception: one
worker is given all of them, because each worker that needs the session starts a JVM. The scheduler
sees no fixtures, only the ids of tests; the fixture `spark` has a parameter that shows in them.
pytest-xdist begins with the parts that have most tests, so these begin early and do not end last.
"""

import re

from xdist.scheduler import LoadFileScheduling

_PARAMETERS = re.compile(r"\[(.*)\]$")


class OneSparkWorker(LoadFileScheduling):
    """Whole files, and as one more part the tests that ask for the Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        parameters = _PARAMETERS.search(nodeid)
        if parameters and "on_spark" in parameters[1].split("-"):
            return "spark"
        return super()._split_scope(nodeid)
