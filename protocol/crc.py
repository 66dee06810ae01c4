"""CRC-32C, the checksum of record batches (RFC 3720, appendix B.4).

The extension module of the package crc32c computes it. The package's `__init__` would also read the
package's version and build an argument parser, which takes a fifteenth of the start of a broker. So
the extension module is loaded without it.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec


def _load() -> Callable[..., int]:
    package = PathFinder.find_spec("crc32c")
    places = None if package is None else package.submodule_search_locations
    spec = PathFinder.find_spec("crc32c._crc32c", places)
    if spec is None or spec.loader is None:  # this version of crc32c has no module `_crc32c`
        from crc32c import crc32c as package_function

        return package_function
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c = _load()
