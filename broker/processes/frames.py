"""How a message between two processes is written: four bytes of length, and a pickle.

Both ends run the same program.
"""

import pickle
import struct

LENGTH = struct.Struct(">I")


def framed(message: object) -> bytes:
    """Encode a message."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content
