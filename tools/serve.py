"""`odradek serve`: reads the configuration and runs the broker.

Exit codes: 0 after a clean shutdown, 2 if the configuration, or what is in the data directories,
cannot be served, 1 for any other failure.
"""

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from odradek.config.errors import ConfigError
from odradek.config.loading import load_config

logger = logging.getLogger("odradek")

EXIT_OK = 0
EXIT_BAD_CONFIG = 2


def main(arguments: list[str], explain: Callable[[str], str] = str) -> int:
    """Run the broker until it is asked to stop; returns the exit code.

    `explain` is applied to messages about the configuration.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.control and not options.print_address:
        parser.error("--control needs --print-address, which says where and with which token")
    if options.port is not None:
        options.override.append(f"listeners=PLAINTEXT://localhost:{options.port}")
    if options.nodes is not None:
        options.override.append(f"odradek.nodes={options.nodes}")
    from odradek.broker.common.log_lines import configure_logging

    configure_logging(options.log_format)
    try:
        loaded = load_config(options.file, options.override)
    except ConfigError as error:
        sys.stderr.write(f"odradek: {explain(str(error))}\n")
        return EXIT_BAD_CONFIG
    for warning in loaded.warnings:
        logger.warning("%s", explain(warning))
    from odradek.broker.lifecycle.run import Start, StartError, serve
    from odradek.broker.lifecycle.running import start_broker
    from odradek.broker.turns.full_collections import spare_what_stays

    start: Start = start_broker
    if options.control:
        from odradek.broker.testing.control import ControlledBroker

        start = ControlledBroker.start
    # What was imported stays until the process ends. Garbage collections of it, during the start
    # and later, would take a tenth of the start.
    spare_what_stays()
    try:
        serve(loaded.config, for_parent=options.print_address, start=start)
    except StartError as error:
        logger.error(
            "%s", explain(str(error))
        )  # without a traceback: the message is written for the operator
        return error.exit_code
    return EXIT_OK


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Made for each argument. Without a width it would import shutil, and that three codecs."""
    try:
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size().columns
    except (ValueError, OSError):
        columns = 80
    return argparse.HelpFormatter(prog, width=columns - 2)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="odradek serve", description="Run the broker.", formatter_class=_formatter
    )
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="the server.properties file; without one: localhost:9092, data in ./data",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a property that overrides the file (may be given several times; passwords: only in"
        " the file)",
    )
    parser.add_argument(
        "--port",
        type=int,
        metavar="PORT",
        help="listen on localhost:PORT only; 0: on a port that is free",
    )
    parser.add_argument(
        "--nodes",
        type=int,
        metavar="N",
        help="for tests of clients: play a cluster of so many nodes, each at the next port",
    )
    parser.add_argument(
        "--print-address",
        action="store_true",
        help="print one line of JSON with the address when the broker serves, and stop when the"
        " process that has started it ends",
    )
    parser.add_argument(
        "--control",
        action="store_true",
        help="for tests: let the process that has started this one inject faults, move the clock"
        " and more, over HTTP on 127.0.0.1; --print-address then prints its address and a token,"
        " too",
    )
    parser.add_argument("--log-format", choices=["text", "json"], default="text")
    return parser
