"""The README's example of the protocol as a library does what it says."""

import re
from pathlib import Path

import pytest

from odradek.protocol.schema import DecodeError

README = Path(__file__).parents[2] / "README.md"


def test_the_example_ends_with_the_error_that_it_shows() -> None:
    (example,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        if "odradek.protocol" in block
    )
    with pytest.raises(DecodeError) as caught:
        exec(compile(example, "README.md", "exec"), {})
    assert f"# DecodeError: {caught.value}" in example
