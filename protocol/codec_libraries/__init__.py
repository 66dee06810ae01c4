"""The libraries that read and write LZ4 and zstd streams, one module for each.

lz4 and zstandard are used where they are installed. They have no wheels for some interpreters and
systems. There cramjam takes over, which snappy needs in any case. This is the one place that
chooses. A library is imported at its first use.

    lz4_package         lz4
    lz4_cramjam         cramjam's LZ4 blocks; the frame around them is read here
    zstd_package        zstandard
    zstd_cramjam        cramjam

Each module of a codec has the same functions, Lz4Library or ZstdLibrary. What they accept is the
same, and so are the limits that they hold.

Reading order: errors, interfaces, then a module of each codec.
"""

from functools import cache

from .interfaces import Lz4Library, ZstdLibrary


@cache
def lz4_library() -> Lz4Library:
    """Return what reads and writes LZ4 frames."""
    try:
        from . import lz4_package
    except ImportError:
        from . import lz4_cramjam

        return lz4_cramjam
    return lz4_package


@cache
def zstd_library() -> ZstdLibrary:
    """Return what reads and writes zstd frames."""
    try:
        from . import zstd_package
    except ImportError:
        from . import zstd_cramjam

        return zstd_cramjam
    return zstd_package
