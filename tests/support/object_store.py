"""An S3-compatible object store: moto's server, behind a proxy that fails on demand."""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from tests.support.failing_proxy import CONTROL

BUCKET = "archives"
STARTS_WITHIN_S = 60.0


class ObjectStore:
    """The store, at the port of its proxy, and at its own, where no request fails."""

    def __init__(self, port: int, own_port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._own_url = f"http://127.0.0.1:{own_port}"

    def location(self, name: str, *, fails: bool = True) -> ArchiveLocation:
        """An archive in the store."""
        options = {
            "aws_endpoint_url": self._url if fails else self._own_url,
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
            "timeout": "20s",
        }
        return ArchiveLocation(f"s3://{BUCKET}/{name}", options)

    def fail(self, **rules: object) -> None:
        """Let requests fail from now on: see failing_proxy."""
        put(self._url + CONTROL, json.dumps(rules).encode())


def put(url: str, body: bytes) -> None:
    """Send a request without a client of S3."""
    urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=20).close()


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """A store with a bucket."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    run = [sys.executable, "-W", "ignore", "-m"]
    server = subprocess.Popen(
        [*run, "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    proxy = subprocess.Popen(
        [*run, "tests.support.failing_proxy", str(port)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert proxy.stdout is not None
        _create_bucket(server, f"http://127.0.0.1:{port}/{BUCKET}")
        yield ObjectStore(int(proxy.stdout.readline()), port)
    finally:
        for process in (server, proxy):
            process.kill()
            process.wait()
        if proxy.stdout is not None:
            proxy.stdout.close()


def _create_bucket(server: "subprocess.Popen[bytes]", url: str) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while True:
        assert server.poll() is None
        assert time.monotonic() < deadline
        with suppress(OSError):
            put(url, b"")
            return
        time.sleep(0.05)
