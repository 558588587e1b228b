"""For MkDocs: links of pages to files outside of docs/ lead to the repository."""

# ruff: noqa: INP001 - a hook, named by mkdocs.yml
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
REPOSITORY = "https://github.com/plimsoll/plimsoll"
_LINK = re.compile(r"\]\((\.\./[^)#\s]*)")


def on_page_markdown(markdown: str, *, page: "Page", **_: object) -> str:
    """Return the page with these links replaced; a link to a missing file is left unchanged, and fails the build."""
    directory = (ROOT / "docs" / page.file.src_path).parent

    def absolute(link: re.Match[str]) -> str:
        target = (directory / link[1]).resolve()
        if target.is_relative_to(ROOT / "docs") or not target.exists():
            return link[0]
        return f"]({REPOSITORY}/{'tree' if target.is_dir() else 'blob'}/main/{target.relative_to(ROOT)}"

    return _LINK.sub(absolute, markdown)
