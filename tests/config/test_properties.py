"""The syntax of .properties files, judged by java.util.Properties itself where Java is at hand."""

import base64
import json
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.config.errors import ConfigError
from odradek.config.properties import parse_properties, render_properties

# No lone surrogates: those do not survive being printed by either side.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t\f b", {"a": "b"}),
        ("  a  =  b  ", {"a": "b  "}),
        ("a = = b", {"a": "= b"}),
        ("a = : b", {"a": ": b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a==b", {"a": "=b"}),
        ("a=b=c:d e", {"a": "b=c:d e"}),
        ("", {}),
        ("\n\r\n\r\n  \t\f\n", {}),
        ("# a=b\n!c=d\n  #e=f\na=b", {"a": "b"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
    ],
)
def test_a_line_is_a_key_and_a_value(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1,\\\n   2", {"a": "1,2"}),
        ("a=1,\\\r\n\t2", {"a": "1,2"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\\\\\n2", {"a": "1\\2"}),
        ("a=1\\\n#2", {"a": "1#2"}),
        ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
        ("a\\\n =1", {"a": "1"}),
        ("# a comment \\\nb=2", {"b": "2"}),
        ("a=1\\", {"a": "1"}),
        ("\\\n#a=1\nb=2", {"b": "2"}),
    ],
)
def test_a_backslash_at_the_end_continues_the_line(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a=\t\n\r\f", {"a": "\t\n\r\f"}),
        (r"a=\u0041\u00e9\u00E9", {"a": "Aéé"}),
        (r"a=\ud83d\ude00", {"a": "😀"}),
        (r"a=C:\\kafka\logs", {"a": r"C:\kafkalogs"}),
        (r"a\=b\:c\ d=e", {"a=b:c d": "e"}),
        (r"a=\z\"\'", {"a": "z\"'"}),
        (r"\#a=\ b", {"#a": " b"}),
        (r"a\u0020b=c", {"a b": "c"}),
    ],
)
def test_escapes_are_javas(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text.encode()) == expected


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\u12g4", r"a=\u", r"a\uzzzz=1", "a=\\u00\\\n41"])
def test_a_broken_unicode_escape_is_refused(text: str) -> None:
    if text.endswith("41"):
        assert parse_properties(text.encode()) == {"a": "A"}  # joined before it is looked at
        return
    with pytest.raises(ConfigError, match=r"Malformed \\uxxxx encoding"):
        parse_properties(text.encode())


def test_each_byte_is_one_character_as_java_reads_a_stream() -> None:
    assert parse_properties("a=é".encode("latin-1")) == {"a": "é"}
    assert parse_properties("a=é".encode()) == {"a": "Ã©"}


def test_what_is_written_looks_as_java_writes_it() -> None:
    pairs = {"a b": " c d", "x=:#!": "=:#!\\", "ü": "\t\n😀"}
    assert render_properties(pairs, ("note",)) == (
        rb"""#note
a\ b=\ c d
x\=\:\#\!=\=\:\#\!\\
\u00FC=\t\n\uD83D\uDE00
"""
    )


@given(st.dictionaries(TEXT, TEXT))
def test_what_is_written_is_read_back(pairs: dict[str, str]) -> None:
    assert parse_properties(render_properties(pairs)) == pairs


JAVA = """
import java.io.*; import java.util.*;
public class Load {
  static String base64(String s) throws Exception {
    return "\\"" + Base64.getEncoder().encodeToString(s.getBytes("UTF-16LE")) + "\\"";
  }
  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      Properties properties = new Properties();
      StringJoiner found = new StringJoiner(",", "{", "}");
      try {
        properties.load(new ByteArrayInputStream(Base64.getDecoder().decode(line)));
        for (String key : properties.stringPropertyNames())
          found.add(base64(key) + ":" + base64(properties.getProperty(key)));
        System.out.println(found);
      } catch (IllegalArgumentException e) { System.out.println("null"); }
    }
  }
}
"""


@pytest.mark.java
def test_random_files_are_read_as_java_reads_them(tmp_path: Path) -> None:
    pieces = ["a", "b", "=", ":", " ", "\t", "\f", "\\", "\\", "\n", "\r", "\r\n", "#", "!"]
    pieces += ["\\u0041", "\\u00", "\\t", "\xe9", "key", "\\\n", "\\\\"]
    dice = random.Random(43)
    texts = ("".join(dice.choices(pieces, k=dice.randint(0, 14))) for _ in range(20_000))
    files = [text.encode("latin-1") for text in texts]
    source = tmp_path / "Load.java"
    source.write_text(JAVA)
    lines = "".join(base64.b64encode(data).decode() + "\n" for data in files)
    run = subprocess.run(
        ["java", str(source)], input=lines, capture_output=True, text=True, check=True
    )
    for data, line in zip(files, run.stdout.splitlines(), strict=True):
        assert _parsed(data) == _decoded(json.loads(line)), data


def _parsed(data: bytes) -> dict[str, str] | None:
    try:
        return parse_properties(data)
    except ConfigError:
        return None


def _decoded(found: dict[str, str] | None) -> dict[str, str] | None:
    if found is None:
        return None
    return {_text(key): _text(value) for key, value in found.items()}


def _text(encoded: str) -> str:
    return base64.b64decode(encoded).decode("utf-16-le", "surrogatepass")
