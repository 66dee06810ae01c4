"""Substitutes environment variables in the values of a job file.

    ${NAME}             the variable's value; it must be set
    ${NAME:-default}    the default if the variable is not set or is empty
    $${NAME}            the text ${NAME}

Values are substituted after the YAML is parsed, so a variable is always one text, whatever
characters it contains. Keys are not changed. Inside { } and [ ], YAML requires quotes around it.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_REFERENCE = re.compile(r"\$(\$?)\{([^}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)

KeyPath = tuple[str | int, ...]


class Problem(NamedTuple):
    """What is wrong with a job file, and at which key."""

    path: KeyPath
    text: str


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
