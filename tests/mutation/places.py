"""Places of the product that can be mutated, and the choice of some of them by a seed.

Docstrings, log lines, annotations, decorators, asserts and the texts of f-strings are left alone.

Every kind of mutation is chosen equally often: most places are integers of message declarations. A
place is chosen by its module's name, function and text, not by its path or line. The same seed
therefore chooses much the same places after files have moved.
"""

import ast
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import chain, pairwise, zip_longest
from pathlib import Path
from typing import NamedTuple

PRODUCT = ("broker", "coordinator", "storage", "protocol", "config")
_SWAPPED = {b"<": b"<=", b">": b">=", b"==": b"!=", b"is": b"is not", b"in": b"not in"}
_SWAPPED |= {b"and": b"or"}
_SWAPPED |= {new: old for old, new in _SWAPPED.items()}
_OPERATOR = re.compile(rb"is not|not in|[<>=!]+|\b(is|in|and|or)\b")
_FALSY = {"bool": "False", "int": "0", "str": "''", "bytes": "b''", "list": "[]", "dict": "{}"}
_FALSY_TEXTS = {"None", "()", *_FALSY.values()}
_LOGGING = re.compile(r"_?logger\.|warnings\.warn\(")
_UNMUTATED = {"annotation", "returns", "decorator_list"}


class Place(NamedTuple):
    """One mutation: `before`, which is at `span` in the bytes of a file, becomes `after`."""

    path: str
    line: int
    kind: str
    span: slice
    before: bytes
    after: bytes
    identity: str  # stays if the file moves, or other lines of it change

    def mutated(self, source: bytes) -> bytes:
        """The file's bytes with the mutation."""
        return source[: self.span.start] + self.after + source[self.span.stop :]

    def rank(self, seed: int) -> bytes:
        """The places of a kind that rank first are chosen."""
        return hashlib.sha256(f"{seed} {self.identity}".encode()).digest()

    def __str__(self) -> str:
        before, after = (b" ".join(text.split()).decode() for text in (self.before, self.after))
        return f"{self.path}:{self.line}  {self.kind}: {before[:60]} -> {after[:60]}"


def chosen_places(root: Path, seed: int, count: int, under: str = "") -> list[Place]:
    """`count` places of the files whose path begins with `under`, or all if there are fewer."""
    by_kind: dict[str, list[Place]] = defaultdict(list)
    files = sorted(file for folder in PRODUCT for file in (root / folder).rglob("*.py"))
    for path in (file.relative_to(root).as_posix() for file in files):
        for place in places_of(path, (root / path).read_bytes()) if path.startswith(under) else ():
            by_kind[place.kind].append(place)
    ranked = [sorted(by_kind[kind], key=lambda place: place.rank(seed)) for kind in sorted(by_kind)]
    return [place for place in chain.from_iterable(zip_longest(*ranked)) if place][:count]


def places_of(path: str, data: bytes) -> Iterator[Place]:
    """All places of one file."""
    source = _Source(data)
    seen: Counter[str] = Counter()
    for function, falsy, node in _mutable_nodes(ast.parse(data)):
        for kind, replaced, after in _mutations(node, falsy, source):
            before, span = source.text(replaced), source.span(replaced)
            name = f"{Path(path).stem} {function} {kind} {before!r} {after!r}"
            seen[name] += 1
            yield Place(path, replaced.lineno, kind, span, before, after, f"{name} {seen[name]}")


class _Source:
    """The bytes of a file, and where in them a node is."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lines = [0]  # where each begins
        for line in data.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def span(self, node: ast.expr | ast.stmt) -> slice:
        """Where the node is; parentheses around it are not part of it."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        return slice(start, self._lines[node.end_lineno - 1] + node.end_col_offset)

    def text(self, node: ast.expr | ast.stmt) -> bytes:
        """The node as it is written."""
        return self._data[self.span(node)]

    def with_operators_swapped(self, node: ast.expr, *operands: ast.expr) -> bytes:
        """The node in parentheses, with another operator between each two operands."""
        written, position = b"(", self.span(node).start
        for left, right in pairwise(operands):
            end, start = self.span(left).stop, self.span(right).start
            operator = _OPERATOR.sub(lambda found: _SWAPPED[found[0]], self._data[end:start], 1)
            written, position = written + self._data[position:end] + operator, start
        return written + self._data[position : self.span(node).stop] + b")"


_Node = tuple[str, str, ast.AST]
_Mutation = tuple[str, ast.expr | ast.stmt, bytes]


def _mutable_nodes(node: ast.AST, function: str = "", falsy: str = "None") -> Iterator[_Node]:
    """Each node that may be mutated, with its function's name and a falsy value of its type."""
    is_log_line = isinstance(node, ast.Expr) and _LOGGING.match(ast.unparse(node))
    if is_log_line or isinstance(node, ast.Assert | ast.JoinedStr):
        return
    if isinstance(node, ast.ClassDef):
        function = node.name
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = f"{function}.{node.name}"
        annotation = ast.unparse(node.returns).partition("[")[0] if node.returns else ""
        falsy = _FALSY.get(annotation, "None")
    yield function, falsy, node
    for field, value in ast.iter_fields(node):
        if field not in _UNMUTATED:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _mutable_nodes(child, function, falsy)


def _mutations(node: ast.AST, falsy: str, source: _Source) -> Iterator[_Mutation]:
    """The mutations of one node: their kind, what is replaced, and by what."""
    match node:
        case ast.Compare(left=left, ops=[_], comparators=[right]):
            yield "comparison", node, source.with_operators_swapped(node, left, right)
        case ast.BoolOp(values=values):
            yield "and, or", node, source.with_operators_swapped(node, *values)
        case ast.UnaryOp(op=ast.Not()):
            yield "not", node, b"(" + source.text(node.operand) + b")"
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield "integer", node, b"%d" % (value + 1)
            yield "integer", node, b"%d" % (value - 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in _FALSY_TEXTS:
            yield "return", node, f"return {falsy}".encode()
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "call", node, b"pass"
        case ast.If(test=test, orelse=[_, *_]) | ast.IfExp(test=test):
            yield "branches", test, b"(not (" + source.text(test) + b"))"
