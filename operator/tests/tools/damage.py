"""Damage to what tools print, and what their readers must make of it.

A reader returns numbers that are right, or a remark about them, or its own error, which names the field. Which fields
may be wrong although the headline is right, docs/reference/tools.md lists for each tool.
"""

import json
import random
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.sample import Measurement

Place = tuple[str | int, ...]

WRONG = [
    "null", "true", "-1", "0.5", "10000000000000000", str(2**63), "1" + "0" * 400, "1e999", "nan", "-nan",
    "inf", "-inf", '"7"', '""', '"x\\ud800\\u0000"', "[]", "{}", "[{}]", '{"a": 1}',
]  # fmt: skip
"""JSON and what programs print instead: of another type, out of range, or not finite."""
AROUND = ["", "\n", "warning: [1] {x}\n", '{"a": 1}\n', "\x00\x1b[0m", "nan", "]"]
_MARK = "@damage@"
VALUES: list[object] = [
    None, True, -1, 0.5, 10**12, 2**63, 10**400, float("nan"), float("inf"), "7", "x\ud800\x00", [], [{}], {}, {"a": 1},
]  # fmt: skip
"""Beyond the range of whole numbers, and within it but beyond anything that can be."""

_NOISE = '\x00\x1b\x7f\ufffd{}[]",:-+eE. \n'


@dataclass(frozen=True, slots=True)
class Damaged:
    """A document with a damaged field, or with other text around it."""

    text: str
    place: Place = ()

    @property
    def names(self) -> list[str]:
        """The names of which an error has at least one: the field's, or that of what contains it; empty for text."""
        return [str(key) for key in self.place if isinstance(key, str)][-2:]


@cache
def places(text: str) -> list[Place]:
    """Return the places of all fields and elements, but of fields with numbers for names (bins) only two."""
    return list(_places(json.loads(text), ()))


def _places(node: Any, place: Place) -> Iterator[Place]:
    keys = list(node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ())
    if isinstance(node, dict) and all(re.match(r"[\d>]", key) for key in keys):
        keys = keys[:2]
    for key in keys:
        yield (*place, key)
        yield from _places(node[key], (*place, key))


def value_at(document: Any, place: Place) -> Any:
    return reduce(lambda node, key: node[key], place, document)


@st.composite
def damaged(draw: st.DrawFn, text: str, names: Collection[str] = ()) -> Damaged:
    """Draw a document with a field, of these names if any, that is missing, doubled, or wrong, or with text around."""
    edit = draw(st.sampled_from(["missing", "doubled", "wrong", "wrong", "around"]))
    if edit == "around":
        return Damaged(draw(st.sampled_from(AROUND)) + text + draw(st.sampled_from(AROUND)))
    place = draw(st.sampled_from([place for place in places(text) if not names or place[-1] in names]))
    document = json.loads(text)
    holder, key = value_at(document, place[:-1]), place[-1]
    value = json.dumps(holder.pop(key))
    if edit == "missing":
        return Damaged(json.dumps(document), place)
    if isinstance(holder, list):
        holder.insert(int(key), _MARK)
    else:
        holder[key] = _MARK
    wrong = draw(st.sampled_from(WRONG))
    if edit == "doubled":
        wrong = f"{value}, {value if isinstance(holder, list) else f'{json.dumps(key)}: {wrong}'}"
    return Damaged(json.dumps(document).replace(json.dumps(_MARK), wrong), place)


@cache
def harmless(tool: str) -> frozenset[str]:
    """Return the fields of a tool's output that may be wrong, as its rows in docs/reference/tools.md list them."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "tools.md").read_text()
    section = page.partition("## Output that is partly wrong")[2].partition("\n## ")[0]
    rows = re.findall(rf"^\| `{tool}` \| (.*?) \|", section, re.MULTILINE)
    assert rows, f"docs/reference/tools.md does not say what may be wrong in the output of {tool}"
    return frozenset(name for row in rows for name in re.findall(r"`([^`]+)`", row))


def noisy(seed: str, text: str, times: int) -> Iterator[str]:
    """Yield the text with a few characters replaced by noise, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  # the same damage in every run
    for _ in range(times):
        noise = "".join(chance.choice(_NOISE) for _ in range(chance.randint(1, 6)))
        start = chance.randrange(len(text))
        yield text[:start] + noise + text[start + chance.randint(0, 6) :]


def lines_damaged(text: str) -> Iterator[str]:
    """Yield the text without each line, with each line twice, and with each pair of neighbours swapped."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        yield "".join([*lines[:number], *lines[number + 1 :]])
        yield "".join([*lines[:number], line, *lines[number:]])
        yield "".join([*lines[:number], *reversed(lines[number : number + 2]), *lines[number + 2 :]])


def outcome(parse: Callable[[str], Measurement], text: str) -> Measurement | None:
    """Return the measurement; None if the text is refused. Both can be sent."""
    try:
        found = parse(text)
    except OutputError as error:
        str(error).encode()
        return None
    found.model_dump_json().encode()
    return found


def totals(measurement: Measurement) -> object:
    return measurement.runtime, measurement.operations, measurement.osds


def check_totals(parse: Callable[[str], Measurement], intact: str, damaged_text: str) -> None:
    """Check that a damaged text is refused, has the true totals, or has a remark about them."""
    truth, found = parse(intact), outcome(parse, damaged_text)
    if found is not None:
        remarks = {*found.errors, *found.warnings} - {*truth.errors, *truth.warnings}
        assert remarks or totals(found) == totals(truth), "a wrong number without a warning"


def check(tool: str, parse: Callable[[str], Measurement], intact: str, damage: Damaged) -> None:
    """Check what a reader makes of a damaged document, given the one that is not."""
    truth = parse(intact)
    may_be_wrong = bool(harmless(tool) & {*map(str, damage.place)})
    try:
        found = parse(damage.text)
    except OutputError as error:
        message = str(error)
        message.encode()
        assert not may_be_wrong, message
        assert not damage.names or any(name in message for name in damage.names), message
        return
    found.model_dump_json().encode()
    remarks = {*found.errors, *found.warnings} - {*truth.errors, *truth.warnings}
    remarked = remarks or found.start_is_estimated > truth.start_is_estimated
    assert remarked or may_be_wrong or found == truth, "a wrong number without a remark"
    if may_be_wrong:
        assert (found.runtime, found.operations, found.osds) == (truth.runtime, truth.operations, truth.osds)
