"""Makes Spark fit for a command line: it logs errors only, and Ctrl-C ends it with one line.

**Logs.** Spark logs many warnings that a user can do nothing about. Some come before a session's
settings apply, so the log level is set when the JVM starts, by a log4j file. A user's own settings
override it: a level in `--conf spark.log.level=INFO`, a log4j file in
`spark.driver.extraJavaOptions` (the JVM reads them after SPARK_SUBMIT_OPTS), or a log4j file in
Spark's configuration directory.

**Ctrl-C** reaches only this process: pyspark shields the JVM from it, and the Python workers are in
a process group of their own. Two things must happen before the job is ended:

- If the JVM is still starting, wait until it has started. A running JVM ends together with this
  process. One that is abandoned while it starts keeps trying to connect to this process forever.
- Then turn the JVM's log off. It would log an error for each task that is cancelled.

pyspark's own handler is not used. It calls the JVM from the main thread, which may be in the middle
of another call.
"""

import _thread
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipeline.spark_internals import has_jvm_started

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = Path(__file__).with_name("log4j2.properties")
_POLL_INTERVAL_S = 0.1
_SUFFIXES = ("properties", "xml", "yaml", "yml", "json", "jsn")


def quiet_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Settings for a session that logs errors only. Must be called before the JVM starts.

    Also sets SPARK_SUBMIT_OPTS in the environment, which the JVM reads.
    """
    if any(_has_log4j(place) for place in _conf_directories()):
        return dict(conf)
    option = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{option} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    return {"spark.log.level": "ERROR", **conf}


def _conf_directories() -> list[Path]:
    """The directories in which Spark looks for a log4j configuration."""
    if given := os.environ.get("SPARK_CONF_DIR"):
        return [Path(given)]
    if given := os.environ.get("SPARK_HOME"):
        return [Path(given) / "conf"]
    pyspark = find_spec("pyspark")
    return [] if pyspark is None or not pyspark.origin else [Path(pyspark.origin).parent / "conf"]


def _has_log4j(directory: Path) -> bool:
    return any((directory / f"log4j2.{suffix}").exists() for suffix in _SUFFIXES)


def start_interruptible(start: Callable[[], "SparkSession"]) -> "SparkSession":
    """Call `start` for a session. From now on Ctrl-C raises KeyboardInterrupt as said above."""
    logging.getLogger().addFilter(_is_no_interrupted_call)  # py4j logs such lines to the root
    interrupts = _Interrupts()
    signal.signal(signal.SIGINT, interrupts)
    try:
        interrupts.session = start()
    except BaseException:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raise
    signal.signal(signal.SIGINT, interrupts)  # in place of pyspark's
    return interrupts.session


class _Interrupts:
    """A SIGINT handler: another thread turns the JVM's log off, then KeyboardInterrupt is raised.

    A second signal raises it at once, unless the JVM has not started yet.
    """

    def __init__(self) -> None:
        self.session: SparkSession | None = None
        self._silencer = threading.Thread(target=self._silence_jvm, name="interrupt", daemon=True)
        self._is_silent = False

    def __call__(self, *_: object) -> None:
        was_started = self._silencer.ident is not None
        if self._is_silent or (was_started and has_jvm_started()):
            raise KeyboardInterrupt
        if not was_started:
            self._silencer.start()

    def _silence_jvm(self) -> None:
        while not has_jvm_started():
            time.sleep(_POLL_INTERVAL_S)
        if self.session is not None:
            with suppress(Exception):  # the JVM may have ended; the interrupt matters more
                self.session.sparkContext.setLogLevel("OFF")
        self._is_silent = True
        _thread.interrupt_main()


def _is_no_interrupted_call(record: logging.LogRecord) -> bool:
    """A log filter: drops the stack trace that py4j logs for a call that Ctrl-C interrupted."""
    return "while sending command" not in str(record.msg)
