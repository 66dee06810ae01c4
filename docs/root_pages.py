"""A hook of mkdocs: pages of the site whose files are at the top of the repository."""

from pathlib import Path
from posixpath import dirname, relpath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

# By file: its place in the site. `security.md` would take the place of security/index.md.
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security/threat-model.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages; their links lead to pages of the site."""
    top = Path(config.config_file_path).parent
    for name, place in PAGES.items():
        text = (top / name).read_text(encoding="utf-8")
        text = text.replace("](docs/", f"]({'../' * place.count('/')}")
        for other, other_place in PAGES.items():
            text = text.replace(f"]({other}", f"]({relpath(other_place, dirname(place))}")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links of other pages to the files lead to the pages."""
    for name, place in PAGES.items():
        up = "../" * (page.file.src_uri.count("/") + 1)
        target = relpath(place, dirname(page.file.src_uri))
        markdown = markdown.replace(f"]({up}{name}", f"]({target}")
    return markdown
