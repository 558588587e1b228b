"""The files, values and commands in the guides exist."""

import re
from pathlib import Path

import pytest
import yaml

from plimsoll.cli import main

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
GUIDES = ("quickstart", "gitops", "suites", "studies")
FILE = re.compile(r"\b(?:manifests|charts|e2e)/[\w./-]*\w")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")


def text_of(guide: str) -> str:
    return (DOCS / f"{guide}.md").read_text()


def blocks(guide: str, language: str) -> list[str]:
    """Return the blocks of a language; of commands and what they print, it is empty."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(guide), re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("guide", GUIDES)
def test_files_are_there(guide: str) -> None:
    named = set(FILE.findall(text_of(guide)))
    assert named
    assert {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("guide", GUIDES)
def test_links_lead_somewhere(guide: str) -> None:
    for name, anchor in LINK.findall(text_of(guide)):
        target = (DOCS / name).resolve() if name else DOCS / f"{guide}.md"
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("guide", GUIDES)
def test_commands_are_those_of_the_command_line(guide: str) -> None:
    typed = {name for block in blocks(guide, "") for name in re.findall(r"^plimsoll (\w+)", block, re.MULTILINE)}
    typed |= set(re.findall(r"`plimsoll (\w+)", text_of(guide)))
    assert typed <= set(main.list_commands(None))  # type: ignore[arg-type]


def test_values_are_those_of_the_chart() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "plimsoll" / "values.yaml").read_text())
    given = [yaml.safe_load(block) for block in blocks("quickstart", "yaml")]
    assert len(given) == 2
    for values in given:
        for name, part in values.items():
            assert part.keys() <= chart[name].keys()
