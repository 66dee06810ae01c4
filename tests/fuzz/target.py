"""What a fuzz target is.

A target hands any bytes to one decoder and returns, whatever they were: the decoder gave a value,
or raised its one documented error. Everything else leaves the target as an exception and is a
finding: another exception, a value that does not survive being encoded and decoded again, two
readers of the same bytes that disagree.

Checksums would stop every mutation at the door, so targets put the right ones in before they read.
How the bytes of an input are laid out is the target's own affair, but it must never change: the
corpus keeps inputs for good. So nothing in them depends on how many messages or versions there are.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

MAX_INPUT_BYTES = 4096
# Of odradek.protocol: what runs only at the first use of a message says nothing about an input.
UNGUIDED = (
    "compiler",
    "declaration",
    "quick_reader_source",
    "reader_source",
    "schema",
    "source",
    "writer_source",
)


class Target(NamedTuple):
    """One decoder under test; `seeds` are well-formed inputs to start from.

    While it runs it allocates at most `memory_base` bytes and `memory_per_byte` for each of the
    input's. That counts what the target itself makes: the value, its bytes, the value again.
    """

    one_input: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    memory_base: int = 128 << 10
    memory_per_byte: int = 300
