"""A YAML text into values, with the line of each key.

Words are what they look like, as in YAML 1.2: PyYAML would take `no` for false, `10:30` for 630 and
2024-02-29 for a date. A key that is there twice is an error, which PyYAML passes over.
"""

import re
from typing import Any, NamedTuple

import yaml

from odradek.pipeline.jobs.job_error import JobError

from .environment import KeyPath

_STRING = "tag:yaml.org,2002:str"
_WORDS = (
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        list("-+.0123456789"),
    ),
    ("tag:yaml.org,2002:merge", r"<<", ["<"]),
)


class YamlText(NamedTuple):
    """Its value; the line of each path of keys, from 1."""

    value: Any
    lines: dict[KeyPath, int]


def read_yaml(text: str, name: str) -> YamlText:
    """One document. Raises JobError, with `name` and line."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise JobError(f"{name} is empty")
            lines: dict[KeyPath, int] = {}
            _note_lines(node, (), lines)
            return YamlText(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        told = " ".join(filter(None, (error.context, error.problem)))
        if mark is not None and "${" in "".join(text.splitlines()[mark.line : mark.line + 1]):
            told += " (inside of { } or [ ], ${NAME} needs quotes)"
        raise JobError(f"{name}{place}: this is no YAML: {told}") from error
    except RecursionError:
        raise JobError(f"{name}: an alias (*) stands inside of what it stands for") from None
    except yaml.YAMLError as error:  # a character that no text has
        raise JobError(f"{name}: this is no YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """Knows the words above, and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 # PyYAML's, copied by the first add


for _tag, _pattern, _first in _WORDS:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), _first)


def _note_lines(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _check_new(key, seen)
                lines[*path, key.value] = key.start_mark.line + 1
                _note_lines(value, (*path, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for at, each in enumerate(node.value):
            _note_lines(each, (*path, at), lines)


def _check_new(key: yaml.ScalarNode, seen: set[str]) -> None:
    if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
        told = f"the key '{key.value}' is there twice"
        raise yaml.constructor.ConstructorError(None, None, told, key.start_mark)
    seen.add(key.value)
