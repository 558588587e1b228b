"""Decided hypotheses in the terminal: a line for each, then the sentences."""

from collections.abc import Iterator, Sequence

from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.text import Text

from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.hypotheses.judge import HypothesisVerdict
from plimsoll.report.hypotheses import estimate_texts, expected_text, replicates_text

_COLOUR = {HypothesisVerdict.HELD: "green", HypothesisVerdict.REFUTED: "red", HypothesisVerdict.UNDECIDED: "yellow"}
_SUSPECT = "* rests on Suspect points"


def show_hypotheses(console: Console, decisions: Sequence[Decision]) -> None:
    """Print the decisions; nothing without any."""
    for part in hypotheses_view(decisions):
        console.print(part, soft_wrap=isinstance(part, Text))


def hypotheses_view(decisions: Sequence[Decision]) -> Iterator[RenderableType]:
    """Yield a table, then a line of text for each decision, reason and note; nothing without decisions."""
    if not decisions:
        return
    yield FittedTable(rows=decisions, layouts=_LAYOUTS, missed=_LAYOUTS[0], remedy="-o json")
    if any(decision.is_suspect for decision in decisions):
        yield Text(_SUSPECT, style="dim")
    for decision in decisions:
        yield Text(f"{decision.name}: ", style="bold").append(decision.sentence, style="not bold")
        # The sentence has the first one.
        yield from (Text(f"  - {reason}") for reason in decision.reasons[1:])
    for note, names in _notes(decisions).items():
        yield Text(f"{', '.join(names)}: {note}", style="dim")


def hypotheses_document(decisions: Sequence[Decision]) -> list[dict[str, JsonValue]]:
    """Return the decisions as a JSON document."""
    return [decision.model_dump(mode="json") for decision in decisions]


def _notes(decisions: Sequence[Decision]) -> dict[str, list[str]]:
    """Return each note once, with the hypotheses that it applies to."""
    found: dict[str, list[str]] = {}
    for decision in decisions:
        for note in decision.notes:
            names = found.setdefault(note, [])
            if decision.name not in names:
                names.append(decision.name)
    return found


def _name(decision: Decision) -> Text:
    text = Text(decision.name)
    return text.append(f"\nin {decision.variant}", style="dim") if decision.variant else text


def _verdict(decision: Decision) -> Text:
    return Text(f"{decision.verdict}{' *' if decision.is_suspect else ''}", style=_COLOUR[decision.verdict])


_Column = FittedColumn[Decision]
_NAME = _Column(heading="Hypothesis", cell=_name, folded=True)
_VERDICT = _Column(heading="Verdict", cell=_verdict)
_ESTIMATE = _Column(heading="Estimate", cell=text_of(lambda one: estimate_texts(one)[0]), right=True)
_INTERVAL = _Column(heading="95 % interval", cell=text_of(lambda one: estimate_texts(one)[1]), right=True)
_EXPECTED = _Column(heading="Expected", cell=text_of(expected_text), right=True)
_RESTS_ON = _Column(heading="From", cell=text_of(replicates_text), right=True)

_LAYOUTS = (
    (_NAME, _VERDICT, _ESTIMATE, _INTERVAL, _EXPECTED, _RESTS_ON),
    (_NAME, _VERDICT, _ESTIMATE, _INTERVAL, _EXPECTED),
    (_NAME, _VERDICT, _INTERVAL, _EXPECTED),
    (_NAME, _VERDICT),
)
"""From wide to narrow: the least important columns are left out first."""
