"""The files of the console's pages: ES modules without a build step, and their libraries.

All views are one page, index.html. Which view it shows stands behind the # of the address, which
browsers do not send. They ask each time whether a file has changed, by its ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct

from odradek.broker.http.messages import HttpRequest, HttpResponse

ROOT = Path(__file__).parent / "pages"
_INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Scripts, styles and pictures are this server's own. Nobody may show the console in a frame.
_HEADERS = (
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self'"
        " data:; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    ),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-cache"),
)


class PageFile(Struct, frozen=True):
    """A file, and the path at which it is served."""

    path: str
    file: Path

    def response(self, request: HttpRequest) -> HttpResponse:
        """Return the file, or that the client has it already."""
        # The files are small, and in the page cache after the first time.
        content = self.file.read_bytes()
        tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
        headers = [*_HEADERS, ("ETag", tag)]
        if request.headers.get("if-none-match") == tag:
            return HttpResponse(HTTPStatus.NOT_MODIFIED, headers=headers)
        return HttpResponse(HTTPStatus.OK, content, _TYPES[self.file.suffix], headers)


def page_files() -> Iterator[PageFile]:
    """All files, and / for index.html."""
    yield PageFile("/", ROOT / _INDEX)
    for file in sorted(ROOT.rglob("*")):
        if file.suffix in _TYPES:
            yield PageFile(f"/{file.relative_to(ROOT).as_posix()}", file)
