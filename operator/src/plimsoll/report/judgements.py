"""The rounds of a suite with their verdicts, and what the last one's comparisons show."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from plimsoll.measure.compare.comparison import change_text
from plimsoll.measure.compare.sides import Ratios, ratios_of
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.compare.values import operation_text
from plimsoll.plan.fingerprint import Difference
from plimsoll.report.overview import value_text
from plimsoll.report.suites import ComparedVariants, ReportedRound, ReportedSuite
from plimsoll.report.text import NONE, count_text
from plimsoll.report.trends import changes_before
from plimsoll.report.view import Block, Cell, Section, Table, Text
from plimsoll.suite.history.family import Found
from plimsoll.suite.history.history import JudgedRound
from plimsoll.suite.history.judging import RoundJudgement

_SECONDS_PER_MINUTE = 60
_SHORT_DIGEST = 8


def rounds_section(rounds: Sequence[ReportedRound]) -> Section:
    """Return a table of the rounds, the last one first."""
    changes = changes_before([one.judged for one in rounds])
    table = Table(
        caption="All rounds, the last one first",
        headings=("Round", "Started", "Verdict", "Baseline", "Measured", "Changed since the round before"),
        rows=[_round_row(one, changed) for one, changed in reversed([*zip(rounds, changes, strict=True)])],
    )
    return Section(key="rounds", title="Rounds", blocks=[table])


def judgements_section(suite: ReportedSuite) -> Section | None:
    """Return what the comparisons of the last round show; None without comparisons."""
    blocks: list[Block] = [block for one in suite.comparisons for block in _of_variants(one)]
    for name, judgement in suite.judgements.items():
        blocks += _of_rounds(name, judgement)
    return Section(key="judgement", title="The last round", blocks=blocks) if blocks else None


def started_text(minute: int) -> str:
    """Return the start of the round of that minute."""
    return datetime.fromtimestamp(minute * _SECONDS_PER_MINUTE, UTC).strftime("%Y-%m-%d %H:%M UTC")


def baseline_text(one: JudgedRound) -> str:
    """Return what later rounds use a round for."""
    return "accepted, pinned" if one.pinned else "accepted" if one.accepted else NONE


def is_notable(found: Found) -> bool:
    """Whether a change is shown: every mean, and whatever is or may be worse."""
    worse = found.judgement.conclusion is Conclusion.REGRESSION or found.judgement.suspected
    return worse or not found.point


def ratios(found: Found) -> Ratios:
    """Return the change as ratios."""
    return ratios_of(found.metric, found.change)


def found_interval_text(found: Found) -> str:
    """Return the 95 % interval of a change."""
    return f"{change_text(ratios(found).low)} to {change_text(ratios(found).high)}"


def found_place(found: Found) -> str:
    """Return the point, or the workload and how many points its mean has."""
    workload = found.group[1]
    return found.point or (f"{workload}, mean of {found.points} points" if found.points > 1 else workload)


def _round_row(one: ReportedRound, changed: Sequence[Difference]) -> list[Cell]:
    measured = one.judged.measured
    return [
        Cell(text=str(measured.minute)),
        Cell(text=started_text(measured.minute)),
        Cell(text=one.conclusion or NONE, mark=one.conclusion or ""),
        Cell(text=baseline_text(one.judged)),
        Cell(text=measured.digest[:_SHORT_DIGEST], title="digest of the run, the variants and repeat"),
        Cell(text="; ".join(map(_change_text, changed)) or NONE),
    ]


def _change_text(one: Difference) -> str:
    return f"{one.key}: {value_text(one.baseline)} → {value_text(one.candidate)}"


def _of_variants(one: ComparedVariants) -> Iterator[Block]:
    question = f"{one.name}: is {one.compared.candidate} worse than {one.compared.baseline}? {one.conclusion}."
    yield Text(paragraphs=[question, *one.doubts])


def _of_rounds(name: str, judgement: RoundJudgement) -> Iterator[Block]:
    baseline = count_text(judgement.accepted, "accepted round")
    yield Text(
        paragraphs=[
            f"{name}: is round {judgement.minute} worse than {baseline}? {judgement.conclusion}.",
            *(f"{variant.variant}: {reason}" for variant in judgement.variants for reason in variant.reasons),
        ]
    )
    found = [one for variant in judgement.variants for one in variant.found if is_notable(one)]
    if found:
        numbers = ("Change", "95 % interval", "Rounds")
        yield Table(
            caption=f"{name}: mean changes of workloads, and points that are or may be worse",
            headings=("Variant", "Point", "Op", "Metric", "Against", *numbers, "Conclusion"),
            numbers=numbers,
            rows=[_found_row(one) for one in found],
            sortable=True,
        )


def _found_row(found: Found) -> list[Cell]:
    variant, _, operation, metric = found.group
    conclusion, improved = found.judgement.conclusion, ", improved" if found.judgement.improved else ""
    return [
        Cell(text=variant),
        Cell(text=found_place(found)),
        Cell(text=operation_text(operation, metric)),
        Cell(text=metric),
        Cell(text=found.against),
        Cell(text=change_text(ratios(found).ratio), sort=ratios(found).ratio),
        Cell(text=found_interval_text(found), sort=ratios(found).low),
        Cell(text=str(found.rounds), sort=found.rounds),
        Cell(text=f"{conclusion}{improved}", mark=conclusion),
    ]
