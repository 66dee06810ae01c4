"""`odradek serve`: read the configuration, run the broker, and say by the exit code how it ended.

0 after a clean shutdown, 2 for a configuration that can't be, 1 for everything else.
"""

import argparse
import logging
import sys
from pathlib import Path

from odradek.config.errors import ConfigError
from odradek.config.loading import load_config

logger = logging.getLogger("odradek")

EXIT_OK = 0
EXIT_BAD_CONFIG = 2


def main(arguments: list[str]) -> int:
    """Run the broker until it is told to stop; returns the exit code."""
    options = _parser().parse_args(arguments)
    from odradek.broker.lifecycle.log_lines import configure_logging

    configure_logging(options.log_format)
    try:
        loaded = load_config(options.file, options.override)
    except ConfigError as error:
        sys.stderr.write(f"odradek: {error}\n")
        return EXIT_BAD_CONFIG
    for warning in loaded.warnings:
        logger.warning("%s", warning)
    from odradek.broker.lifecycle.run import StartError, serve

    try:
        serve(loaded.config)
    except StartError as error:
        logger.error("%s", error)  # the sentence says it all
        return error.exit_code
    return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="odradek serve", description="Run the broker.")
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="server.properties; without it: localhost:9092, data in ./data",
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a property that wins over the file (may be given often)",
    )
    parser.add_argument("--log-format", choices=["text", "json"], default="text")
    return parser
