"""The hypotheses of a suite, decided: what was expected, the numbers, and the decision in words."""

import math
from collections.abc import Iterator, Sequence

from plimsoll.measure.hypotheses.decide import Decision, Form, expectation_text, interval_texts, known_end_text
from plimsoll.measure.hypotheses.judge import Interval
from plimsoll.report.text import NONE
from plimsoll.report.view import Block, Cell, Section, Table, Text

_WORDS = (
    "A ratio is in percent; an exponent says how a quantity grows with an axis. A hypothesis is Held or Refuted if its "
    "whole 95 % confidence interval lies within or beyond the expectation, and Undecided otherwise. * rests on Suspect "
    "points."
)


def hypotheses_section(decisions: Sequence[Decision]) -> Section | None:
    """Return the hypotheses as a table and sentences; None if there are none."""
    if not decisions:
        return None
    numbers = ("Estimate", "95 % interval", "Expected", "From")
    table = Table(
        caption="Hypotheses, decided in the last round",
        headings=("Hypothesis", "Variant", "Verdict", *numbers),
        numbers=numbers,
        rows=[_row(one) for one in decisions],
    )
    blocks: list[Block] = [Text(paragraphs=[_WORDS]), table, Text(paragraphs=[*_sentences(decisions)])]
    return Section(key="hypotheses", title="Hypotheses", blocks=blocks)


def estimate_texts(decision: Decision) -> tuple[str, str]:
    """Return estimate and interval, or the known end of it."""
    if decision.estimate is None or decision.low is None or decision.high is None:
        return NONE, _known_end(decision)
    interval = Interval(estimate=decision.estimate, low=decision.low, high=decision.high)
    is_ratio = decision.form is Form.RATIO
    estimate, low, high = interval_texts(interval, (decision.at_least, decision.at_most), is_ratio=is_ratio)
    unit = " %" if is_ratio else ""
    return f"{estimate}{unit}", f"{low} to {high}{unit}"


def _known_end(decision: Decision) -> str:
    low = -math.inf if decision.low is None else decision.low
    high = math.inf if decision.high is None else decision.high
    if math.isinf(low) and math.isinf(high):
        return NONE
    return known_end_text(Interval(estimate=low, low=low, high=high), (decision.at_least, decision.at_most))


def expected_text(decision: Decision) -> str:
    """Return what was expected."""
    return expectation_text((decision.at_least, decision.at_most), is_ratio=decision.form is Form.RATIO)


def replicates_text(decision: Decision) -> str:
    """Return the replicates on each side: `5+5 trials`."""
    if decision.unit is None:
        return NONE
    return f"{'+'.join(map(str, decision.replicates))} {decision.unit.lower()}s"


def _row(one: Decision) -> list[Cell]:
    estimate, interval = estimate_texts(one)
    return [
        Cell(text=one.name),
        Cell(text=one.variant or NONE),
        Cell(text=f"{one.verdict}{' *' if one.is_suspect else ''}", mark=one.verdict),
        Cell(text=estimate, sort=one.estimate),
        Cell(text=interval, sort=one.low),
        Cell(text=expected_text(one)),
        Cell(text=replicates_text(one)),
    ]


def _sentences(decisions: Sequence[Decision]) -> Iterator[str]:
    """Yield each decision in words with all its reasons, then each note once."""
    for one in decisions:
        # The sentence has the first reason.
        yield " ".join([f"{one.name}: {one.sentence}", *(f"{reason}." for reason in one.reasons[1:])])
    for note in dict.fromkeys(note for one in decisions for note in one.notes):
        yield f"{', '.join(dict.fromkeys(one.name for one in decisions if note in one.notes))}: {note}"
