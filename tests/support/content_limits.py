"""Limits on the content of compressed batches, so small that a test reaches them."""

from typing import Any

import pytest

from odradek.protocol import record
from odradek.protocol.compression import MAX_DECOMPRESSED_BYTES, decompress
from odradek.storage.inspect import raw_message


def scale_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a byte of each MiB that a batch may hold: the usual limit is 256 bytes then."""

    def decompressed(*stored: Any, max_bytes: int = MAX_DECOMPRESSED_BYTES, **limits: Any) -> bytes:
        return decompress(*stored, max_bytes=max_bytes >> 20, **limits)

    for module in (record, raw_message):
        monkeypatch.setattr(module, "decompress", decompressed)
