"""Subjects and the contexts in front of their names.

A subject `:.prod:orders-value` is `orders-value` in the context `.prod`; a plain name is in the
default context `.`. Ids, configurations and modes are of one context each. `:.prod:` alone names
the context itself. The context `.__GLOBAL` has the settings that apply to all contexts.

Confluent: QualifiedSubject, without tenants.
"""

from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
ALL_CONTEXTS = ":*:"  # as a prefix: the subjects of each context
_PREFIX = ":."
_RESERVED = ("__GLOBAL", "__EMPTY")


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject as its context and its name inside it; no name stands for the context."""

    context: str
    name: str

    @property
    def qualified_context(self) -> str:
        """`:.prod:`, or nothing for the default context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    @property
    def qualified(self) -> str:
        return self.qualified_context + self.name


def parse(text: str) -> Subject:
    if text.startswith(_PREFIX):
        context, _, name = text[1:].partition(":")
        return Subject(context, name)
    if text.startswith(ALL_CONTEXTS):
        return Subject("*", text[len(ALL_CONTEXTS) :])
    return Subject(DEFAULT_CONTEXT, text)


def normalized(text: str) -> str:
    """Return the one spelling of a subject: `:.:name` is `name`."""
    return parse(text).qualified


def settings_subject(text: str | None) -> str | None:
    """Return the key of a subject's settings: None for the default context itself."""
    if text is None:
        return None
    subject = parse(text)
    if subject.context == DEFAULT_CONTEXT and not subject.name:
        return None
    return subject.qualified


def beside(parent: str, text: str) -> str:
    """Return a subject that is named inside `parent`, whose context it has unless it names one."""
    subject = parse(text)
    if subject.context != DEFAULT_CONTEXT:
        return subject.qualified
    return Subject(parse(parent).context, text).qualified


def begins(prefix: str) -> Callable[[str], bool]:
    """Return whether a subject has a prefix.

    The prefix is in one context: in the default one, too, if it names none. After `:*:` it is in
    any context. `:.pro` without a second colon begins the names of contexts. Confluent:
    AbstractSchemaRegistry.allVersions, SubjectKeyComparator.
    """
    wanted = parse(prefix)
    is_any = wanted.context == "*"
    is_of_contexts = prefix.startswith(_PREFIX) and ":" not in prefix[len(_PREFIX) :]

    def has_prefix(text: str) -> bool:
        subject = parse(text)
        if is_of_contexts:
            return subject.context.startswith(wanted.context)
        is_in_context = is_any or subject.context == wanted.context
        return is_in_context and subject.name.startswith(wanted.name)

    return has_prefix


def is_valid(text: str, *, for_settings: bool = False) -> bool:
    if any(ord(character) < 32 or 127 <= ord(character) < 160 for character in text):
        return False
    subject = parse(text)
    if subject.name in _RESERVED:
        return False
    return for_settings or (subject.context != GLOBAL_CONTEXT and bool(subject.name))


def selects(selection: str | None, subject: str) -> bool:
    """Whether `selection`, a subject or a context without a name, includes a subject."""
    if selection is None or selection == subject:
        return True
    wanted = parse(selection)
    if wanted.name:
        return False
    return wanted.context == GLOBAL_CONTEXT or wanted.context == parse(subject).context
