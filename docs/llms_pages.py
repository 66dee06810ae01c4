"""A hook of mkdocs: the pages as Markdown beside their HTML, and llms.txt, which lists them.

The format: https://llmstxt.org
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

# What the build has seen, in the order of the navigation: each page with its Markdown.
_pages: list[tuple[Page, str]] = []


def on_nav(nav: Navigation, **_: Any) -> Navigation:
    """Begin a build."""
    _pages.clear()
    return nav


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Keep the page as it is after the other hooks."""
    _pages.append((page, markdown))
    return markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Write the files into the site."""
    site = Path(config.site_dir)
    lines = [
        f"# {config.site_name}",
        "",
        f"> {config.site_description}",
        "",
        "## Documentation",
        "",
    ]
    for page, markdown in _pages:
        place = page.file.src_uri
        lines.append(f"- [{page.title}]({place})")
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(markdown, encoding="utf-8")
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
