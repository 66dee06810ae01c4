"""Tables of results, as a terminal shows them."""

import sys

import pytest

from odradek.tools.tables import show_table


@pytest.mark.parametrize("name", ["orders[eu]", "a[/b]", ":smile:"])
def test_a_name_is_shown_on_a_terminal_as_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_table(name, ("group", "lag"), [[name, "1"]])
    assert capsys.readouterr().out.count(name) == 2
