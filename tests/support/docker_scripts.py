"""The scripts of the image, which import each other by name and are in no package."""

import sys
from importlib import import_module
from pathlib import Path

DOCKER = Path(__file__).parents[2] / "docker"

sys.path.append(str(DOCKER))
entrypoint = import_module("entrypoint")
healthcheck = import_module("healthcheck")
other_images = import_module("other_images")
kafka_commands = import_module("kafka_commands")
