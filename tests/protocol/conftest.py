"""The libraries of LZ4 and zstd, for tests that each of them must pass."""

from collections.abc import Iterator

import pytest

from odradek.protocol import compressed_pieces, compression
from odradek.protocol.codec_libraries import lz4_cramjam, zstd_cramjam


@pytest.fixture(scope="module", params=["chosen", "cramjam"])
def codec_libraries(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the tests of a module with the libraries that are chosen, and with cramjam alone."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "cramjam":
            patch.setattr(compression, "lz4_library", lambda: lz4_cramjam)
            patch.setattr(compression, "zstd_library", lambda: zstd_cramjam)
            patch.setattr(compressed_pieces, "zstd_library", lambda: zstd_cramjam)
        yield request.param
