"""What the modules of the codecs raise. compression.py names the codec in its own errors."""


class CodecError(ValueError):
    """The data is not a stream of the codec."""


class ContentTooLargeError(CodecError):
    """The content is larger than allowed, and no part of it was returned."""


class TooManyBlocksError(CodecError):
    """The stream has more blocks than allowed."""
