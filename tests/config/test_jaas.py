"""JAAS lines: what Kafka reads from them, and what is refused without a word of the secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config.errors import ConfigError
from odradek.config.jaas import JaasEntry, parse_jaas

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
KEY = "listener.name.a.plain.sasl.jaas.config"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (";", {}),
        (' user_alice="alice-secret";', {"user_alice": "alice-secret"}),
        (" user_alice=secret ;", {"user_alice": "secret"}),
        (" a = 'single \" quoted' b=\"x'y\";", {"a": 'single " quoted', "b": "x'y"}),
        ('\n  a="1"\n  b="2"\n;\n', {"a": "1", "b": "2"}),
        (' "quoted key"="v";', {"quoted key": "v"}),
        (r' a="\"\\\n\101\60\477";', {"a": '"\\\nA0\x277'}),
        (' a="1" a="2";', {"a": "2"}),
        (' a="1" /* a comment; */ b="2"; // the end', {"a": "1", "b": "2"}),
        (" a=x/ the rest is a comment;\n;", {"a": "x"}),
        (' a="ends with the line\n;', {"a": "ends with the line"}),
        (" a=w-1.2_$ b=été;", {"a": "w-1.2_$", "b": "été"}),
        (' a="";', {"a": ""}),
    ],
)
def test_options_are_read_as_kafka_reads_them(text: str, options: dict[str, str]) -> None:
    assert parse_jaas(KEY, f"{MODULE} required{text}") == JaasEntry(MODULE, options)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  // only a comment",
        MODULE,
        f"{MODULE};",
        f"{MODULE} needed hunter2;",
        f'{MODULE} required user_a="hunter2"',
        f"{MODULE} required user_hunter2;",
        f"{MODULE} required user_a=;",
        f"{MODULE} required =hunter2;",
        f"{MODULE} required user_a=12345hunter2;",
        f"{MODULE} required user_a=-hunter2;",
        f"{MODULE} required user_a hunter2;",
        f'{MODULE} required a="hunter2"; {MODULE} required;',
        '; required a="hunter2";',
    ],
)
def test_a_malformed_line_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_jaas(KEY, text)
    message = str(caught.value)
    assert KEY in message
    assert "\n" not in message
    assert "hunter2" not in message


def test_the_options_are_not_part_of_the_representation() -> None:
    assert "hunter2" not in repr(parse_jaas(KEY, f'{MODULE} required user_a="hunter2";'))


@given(st.text(max_size=80) | st.text("ab\"'\\/*=; \n1.-;", max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        entry = parse_jaas(KEY, f"{MODULE} required {text}")
    except ConfigError:
        return
    assert entry.login_module == MODULE


@given(st.dictionaries(st.from_regex(r"[A-Za-z_$][\w.$-]{0,9}", fullmatch=True), st.text()))
def test_quoted_values_are_read_back(options: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        return '"' + "".join(f"\\{c}" if c in '"\\\r\n' else c for c in text) + '"'

    line = " ".join(f"{quoted(name)}={quoted(value)}" for name, value in options.items())
    assert parse_jaas(KEY, f"{MODULE} required {line};").options == options
