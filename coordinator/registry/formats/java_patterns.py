"""Which patterns Java cannot compile, as far as their parentheses, classes and repetitions show it.

Confluent's registry refuses a JSON Schema with a pattern that java.util.regex.Pattern does not
compile. No library here knows Java's syntax: RE2 lacks look-ahead, Python has other classes. So
only what is wrong beyond doubt is found: a group or class that is not closed, a group that is not
opened, a repetition of nothing, a backslash at the end.
"""

import re

_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\c.|\\.|\((?:\?(?:<?[=!]|[:>]|<\w*>)?)?|\[\^?\]?|[*+?][?+]?|.", re.DOTALL
)
_WITH_COMMENTS = re.compile(r"\(\?[a-zA-Z]*x")  # then `#` begins a comment, which may have anything
_IN_CLASS = re.compile(r"\\Q.*?(?:\\E|\Z)|\\c.|\\.|\[\^?\]?|.", re.DOTALL)


def fault_of(pattern: str) -> str | None:
    """Return why a pattern cannot be compiled, or None if nothing is found. Linear."""
    if _WITH_COMMENTS.search(pattern):
        return None
    groups = classes = position = 0
    repeatable = False
    while position < len(pattern):
        found = (_IN_CLASS if classes else _TOKEN).match(pattern, position)
        assert found is not None
        token, position = found[0], found.end()
        if token == "\\":
            return "a backslash at the end"
        if token[0] == "[":
            classes += 1
        elif classes:
            classes -= token == "]"
            repeatable = True
        elif token[0] == "(":
            groups += 1
            repeatable = False
        elif token == ")":
            if not groups:
                return "unmatched closing ')'"
            groups -= 1
            repeatable = True
        elif token[0] in "*+?":
            if not repeatable:
                return f"dangling meta character '{token[0]}'"
            repeatable = False
        else:
            repeatable = token != "|"
    if classes:
        return "unclosed character class"
    return "unclosed group" if groups else None
