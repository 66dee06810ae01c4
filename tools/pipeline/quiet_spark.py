"""Spark on a command line: it says errors only, and a Ctrl-C is said in one line.

**Logs.** Spark warns of much that nobody can change, and begins before a setting of the session
counts: so the JVM is told at its start, by a file of log4j's. What a user sets wins: a level by
`--conf spark.log.level=INFO`, a file by `spark.driver.extraJavaOptions` (which come behind
SPARK_SUBMIT_OPTS) or where Spark looks for one.

**Ctrl-C** reaches this process alone: pyspark keeps it from the JVM, and its workers are in a group
of their own. It has to wait for the JVM, which ends when we do, but not when it is left while it
comes up: then it looks for us for ever. Then the JVM is told to say nothing more, for it would
complain of each task that is cancelled. pyspark's own handler is not used: it asks the JVM from
wherever the main thread is, perhaps in the middle of another question.
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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG4J = Path(__file__).with_name("log4j2.properties")
_LOOK_EVERY_S = 0.1
_SUFFIXES = ("properties", "xml", "yaml", "yml", "json", "jsn")


def quiet_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session that says errors only. Must be called before the JVM starts."""
    if any(_has_log4j(place) for place in _conf_directories()):
        return dict(conf)
    option = f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}"
    os.environ["SPARK_SUBMIT_OPTS"] = f"{option} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    return {"spark.log.level": "ERROR", **conf}


def _conf_directories() -> list[Path]:
    """Where Spark looks for a configuration of log4j."""
    if given := os.environ.get("SPARK_CONF_DIR"):
        return [Path(given)]
    if given := os.environ.get("SPARK_HOME"):
        return [Path(given) / "conf"]
    pyspark = find_spec("pyspark")
    return [] if pyspark is None or not pyspark.origin else [Path(pyspark.origin).parent / "conf"]


def _has_log4j(directory: Path) -> bool:
    return any((directory / f"log4j2.{suffix}").exists() for suffix in _SUFFIXES)


def start_interruptible(start: Callable[[], "SparkSession"]) -> "SparkSession":
    """The session that `start` makes; Ctrl-C becomes a KeyboardInterrupt, now and from then on."""
    logging.getLogger().addFilter(_is_news)
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
    """A handler that has the JVM hushed by another thread before it raises KeyboardInterrupt.

    A second signal does not wait, unless there is no JVM yet.
    """

    def __init__(self) -> None:
        self.session: SparkSession | None = None
        self._hushing = threading.Thread(target=self._hush, name="interrupt", daemon=True)
        self._is_hushed = False

    def __call__(self, *_: object) -> None:
        if self._is_hushed or (self._hushing.ident is not None and _jvm_is_there()):
            raise KeyboardInterrupt
        if self._hushing.ident is None:
            self._hushing.start()

    def _hush(self) -> None:
        while not _jvm_is_there():
            time.sleep(_LOOK_EVERY_S)
        if self.session is not None:
            with suppress(Exception):  # then it is not quiet, or not there any more
                self.session.sparkContext.setLogLevel("OFF")
        self._is_hushed = True
        _thread.interrupt_main()


def _jvm_is_there() -> bool:
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def _is_news(record: logging.LogRecord) -> bool:
    """Not what py4j says, with a stack trace, of a question that an interrupt has cut short."""
    return "while sending command" not in str(record.msg)
