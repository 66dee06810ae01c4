"""A hook of mkdocs: pages of the site whose files are at the top of the repository."""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, in lower case; their links lead to pages of the site."""
    top = Path(config.config_file_path).parent
    for name in PAGES:
        text = (top / name).read_text().replace("](docs/", "](")
        for other in PAGES:
            text = text.replace(f"]({other}", f"]({other.lower()}")
        files.append(File.generated(config, name.lower(), content=text))
    return files
