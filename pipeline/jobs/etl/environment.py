"""Environment variables in the values of a job file.

    ${NAME}             the variable's value; it must be set
    ${NAME:-default}    the default where it is not set, or empty
    $${NAME}            the text ${NAME}

Values are replaced after the YAML has been read, so what is in a variable stays one text, whatever
characters it has. Keys are left as they are. Inside of { } and [ ], YAML wants quotes around it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")
_WANTED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

KeyPath = tuple[str | int, ...]


class Problem(NamedTuple):
    """What is wrong with a job file, and where in it."""

    path: KeyPath
    text: str


class Environment:
    """The variables, and what was missing."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.problems: list[Problem] = []

    def substituted(self, data: Any, path: KeyPath = ()) -> Any:  # what YAML can be
        """The same with its texts replaced."""
        match data:
            case str():
                return _REFERENCE.sub(lambda match: self._value(match, path), data)
            case dict():
                return {key: self.substituted(each, (*path, key)) for key, each in data.items()}
            case list():
                return [self.substituted(each, (*path, at)) for at, each in enumerate(data)]
            case _:
                return data

    def _value(self, match: "re.Match[str]", path: KeyPath) -> str:
        if match[1]:
            return match[0][1:]
        wanted = _WANTED.fullmatch(match[2])
        if wanted is None:
            self.problems.append(
                Problem(path, f"{match[0]} is neither ${{NAME}} nor ${{NAME:-default}}")
            )
            return ""
        name, default = wanted[1], wanted[2]
        value = self._variables.get(name)
        if default is not None:
            return value or default
        if value is None:
            self.problems.append(
                Problem(
                    path,
                    f"the environment variable {name} is not set "
                    f"(${{{name}:-default}} would give it a default)",
                )
            )
            return ""
        return value
