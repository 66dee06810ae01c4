"""LZ4 frames by the package lz4."""

from collections.abc import Iterator

from lz4 import frame

from .errors import CodecError
from .interfaces import Buffer

_INPUT_BYTES = 256 << 10  # the library copies unused input at each call
_OUTPUT_BYTES = 1 << 20
# Below this level the library uses the fast compressor; Kafka uses the other one at each level.
_LOWEST_HIGH_LEVEL = 3


def compress(data: Buffer, level: int | None) -> bytes:
    """Write one frame of independent blocks of 64 KiB. None: the fast compressor."""
    compressed: bytes = frame.compress(
        data,
        compression_level=0 if level is None else max(level, _LOWEST_HIGH_LEVEL),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


def pieces(
    view: memoryview,
    max_blocks: int,  # noqa: ARG001 # the library needs no limit
) -> Iterator[bytes]:
    """Yield the content of one frame. Raises CodecError."""
    decompressor = frame.LZ4FrameDecompressor()
    # In steps, because the decoder allocates as much as it may return.
    for start in range(0, len(view), _INPUT_BYTES):
        pending: Buffer = view[start : start + _INPUT_BYTES]
        is_full = True
        while is_full:
            try:
                part: bytes = decompressor.decompress(pending, _OUTPUT_BYTES)
            except (RuntimeError, ValueError) as error:
                raise CodecError(error) from None
            yield part
            if decompressor.eof:
                return
            pending = b""
            is_full = len(part) == _OUTPUT_BYTES
    raise CodecError("the frame ends too early")
