"""Reads and checks job files: YAML, in which ${NAME} is an environment variable.

    ${NAME}             the variable's value; it must be set
    ${NAME:-default}    the default if the variable is not set or is empty
    $${NAME}            the text ${NAME}

Values are substituted after the YAML is parsed, so a variable is always one text, whatever
characters it contains. Keys are not changed. Inside { } and [ ], YAML requires quotes around it.

Types are those of YAML 1.2. PyYAML would parse `no` as false, `10:30` as 630 and 2024-02-29 as a
date. Duplicate keys, which PyYAML ignores, and unknown keys are errors. Each error names the key
and its line.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from odradek.pipeline.jobs import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.write_options import WriteOptions, write_options
from odradek.pipeline.source.options import ReadOptions, read_options

from .job_model import EtlJob

_BOOTSTRAP = "bootstrap.servers"
_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_IMPLICIT_TYPES = (
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
KeyPath = tuple[str | int, ...]


class Problem(NamedTuple):
    """What is wrong with a job file, and at which key."""

    path: KeyPath
    text: str


def read_job(path: Path, variables: Mapping[str, str] = os.environ) -> EtlJob:
    """Read a job file. Raises JobError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"cannot read the job file: {error}") from error
    return parse_job(text, path.absolute().parent, variables, str(path))


def parse_job(text: str, base: Path, variables: Mapping[str, str], name: str = "job") -> EtlJob:
    """Parse a job file's text; paths in it are relative to `base`. Raises JobError."""
    parsed = read_yaml(text, name)
    environment = Environment(variables)
    data = environment.substitute(parsed.value)
    problems = list(environment.problems)
    if not problems:
        try:
            return _with_absolute_paths(EtlJob.model_validate(data), base)
        except ValidationError as error:
            problems = [_problem(each) for each in error.errors(include_input=False)]
    raise JobError("\n".join(_formatted(each, name, parsed.lines) for each in problems))


def _with_absolute_paths(job: EtlJob, base: Path) -> EtlJob:
    sources = {}
    for name, source in job.sources.items():
        options = {
            key: _absolute_each(value, base) if key.lower() == "path" else value
            for key, value in source.options.items()
        }
        sources[name] = source.model_copy(update={"options": options})
    checkpoint = _absolute(job.checkpoint, base)
    return job.model_copy(update={"sources": sources, "checkpoint": checkpoint})


def _absolute_each(paths: str, base: Path) -> str:
    return ",".join(_absolute(part.strip(), base) for part in paths.split(",") if part.strip())


def _absolute(path: str, base: Path) -> str:
    """Return an absolute path; a URI is absolute."""
    return path if ":/" in path else str(base / path)


def _problem(error: Mapping[str, Any]) -> Problem:  # pydantic's ErrorDetails
    path: KeyPath = tuple(part for part in error["loc"] if part != "[key]")
    text = str(error["msg"])
    match error["type"]:
        case "missing":
            text = "is missing"
        case "unknown_key":
            path = (*path, error["ctx"]["key"])
        case "string_type":
            text = "must be text (put it in quotes)"
    return Problem(path, text[:1].lower() + text[1:])


def _formatted(problem: Problem, name: str, lines: Mapping[KeyPath, int]) -> str:
    """Return `file:line: key.path: text`."""
    known: KeyPath = problem.path
    while known and known not in lines:
        known = known[:-1]
    line = f":{lines[known]}" if known in lines else ""
    place = ".".join(map(str, problem.path))
    return f"{name}{line}: {place}: {problem.text}" if place else f"{name}{line}: {problem.text}"


# --- YAML


class YamlText(NamedTuple):
    """The parsed value, and the line of each path of keys, from 1."""

    value: Any
    lines: dict[KeyPath, int]


def read_yaml(text: str, name: str) -> YamlText:
    """Parse one document. Raises JobError, which contains `name` and the line."""
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise JobError(f"{name} is empty")
            lines: dict[KeyPath, int] = {}
            _record_lines(node, (), lines)
            return YamlText(loader.construct_document(node), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "" if mark is None else f":{mark.line + 1}:{mark.column + 1}"
        message = " ".join(filter(None, (error.context, error.problem)))
        if mark is not None and "${" in "".join(text.splitlines()[mark.line : mark.line + 1]):
            message += " (inside { } or [ ], ${NAME} needs quotes)"
        raise JobError(f"{name}{place}: invalid YAML: {message}") from error
    except RecursionError:
        raise JobError(f"{name}: an alias (*) refers to a value that contains it") from None
    except yaml.YAMLError as error:  # an invalid character
        raise JobError(f"{name}: invalid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """Recognises the types above, and no others."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 # PyYAML's, copied by the first add


for _tag, _pattern, _first in _IMPLICIT_TYPES:
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), _first)


def _record_lines(node: yaml.Node, path: KeyPath, lines: dict[KeyPath, int]) -> None:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _check_unique(key, seen)
                lines[*path, key.value] = key.start_mark.line + 1
                _record_lines(value, (*path, key.value), lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, each in enumerate(node.value):
            _record_lines(each, (*path, index), lines)


def _check_unique(key: yaml.ScalarNode, seen: set[str]) -> None:
    if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
        message = f"duplicate key '{key.value}'"
        raise yaml.constructor.ConstructorError(None, None, message, key.start_mark)
    seen.add(key.value)


# --- environment variables


class Environment:
    """The variables, and the problems found while substituting them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.problems: list[Problem] = []

    def substitute(self, data: Any, path: KeyPath = ()) -> Any:  # any YAML value
        """Return the data with all texts substituted."""
        match data:
            case str():
                return _REFERENCE.sub(lambda match: self._value(match, path), data)
            case dict():
                return {key: self.substitute(each, (*path, key)) for key, each in data.items()}
            case list():
                return [self.substitute(each, (*path, index)) for index, each in enumerate(data)]
            case _:
                return data

    def _value(self, match: "re.Match[str]", path: KeyPath) -> str:
        if match[1]:
            return match[0][1:]
        variable = _VARIABLE.fullmatch(match[2])
        if variable is None:
            self.problems.append(
                Problem(path, f"{match[0]} is neither ${{NAME}} nor ${{NAME:-default}}")
            )
            return ""
        name, default = variable[1], variable[2]
        value = self._variables.get(name)
        if default is not None:
            return value or default
        if value is None:
            self.problems.append(
                Problem(
                    path,
                    f"the environment variable {name} is not set "
                    f"(${{{name}:-default}} sets a default)",
                )
            )
            return ""
        return value


# --- options, which are checked before Spark is started


class CheckedOptions(NamedTuple):
    """The options by view (without `format: kafka`, which Spark checks), and the sink's."""

    sources: dict[str, ReadOptions]
    sink: WriteOptions


def check_options(job: EtlJob) -> CheckedOptions:
    """Parse all options. Raises JobError, also for a job that would read what it writes."""
    try:
        sink = write_options(job.sink_options)
    except OptionError as error:
        raise JobError(f"sink.options: {error}") from None
    if sink.topic is not None:
        raise JobError("sink.options: set the topic as sink.topic, not as an option")
    sources: dict[str, ReadOptions] = {}
    for name, source in job.sources.items():
        if source.format == "odradek":
            try:
                sources[name] = read_options(job.source_options(name), streaming=True)
            except OptionError as error:
                raise JobError(f"sources.{name}.options: {error}") from None
            if sources[name].value_format != "binary":
                raise JobError(f"sources.{name}.options: write value: {sources[name].value_format}")
            if sources[name].batch_view:
                raise JobError(f"sources.{name}.options: view=batches has no keys and values")
    _check_no_cycle(job, sources, sink)
    return CheckedOptions(sources, sink)


def written_topics(job: EtlJob) -> Iterator[tuple[str, str]]:
    """Yield place in the file and name of each topic that is set in the file."""
    if job.sink.topic is not None:
        yield "sink.topic", job.sink.topic
    for name, source in job.sources.items():
        if source.on_bad_record == "dead-letter" and source.dead_letter_topic is not None:
            yield f"sources.{name}.dead_letter_topic", source.dead_letter_topic


def _check_no_cycle(job: EtlJob, sources: dict[str, ReadOptions], sink: WriteOptions) -> None:
    """Refuse a job that would never end. A source without bootstrap servers reads files."""
    for place, topic in written_topics(job):
        for name, options in sources.items():
            brokers = options.client.get(_BOOTSTRAP, sink.client[_BOOTSTRAP])
            if brokers == sink.client[_BOOTSTRAP] and options.topics.reads(topic):
                raise JobError(
                    f"{place}: sources.{name} reads {topic}: the job would read its own output"
                )
