"""A suite beside the study that it repeats, in the terminal."""

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from plimsoll.cli.fitted import FittedColumn, FittedTable, text_of
from plimsoll.report.published import (
    difference_texts,
    own_rates_text,
    own_text,
    published_text,
    remark_text,
    study_text,
)
from plimsoll.studies.comparison import ComparedShare, StudyComparison
from plimsoll.studies.published import Origin


def show_study(console: Console, compared: StudyComparison | None) -> None:
    """Print the shares of the study and the user's own; nothing without a study, or without shares."""
    if compared is None or not compared.shares:
        return
    console.print(Text(f"\nBeside {study_text(compared)}", style="bold"))
    console.print(FittedTable(rows=compared.shares, layouts=_LAYOUTS, missed=_LAYOUTS[0], remedy="-o json"))
    if any(one.own.is_suspect for one in compared.shares):
        console.print(Text("* rests on Suspect points", style="dim"))
    if any(one.published.origin is Origin.DERIVED for one in compared.shares):
        console.print(Text("derived: computed from the study's numbers, not published itself", style="dim"))
    for one in compared.shares:
        if remark := remark_text(one):
            console.print(Text(f"{one.name}: {remark}", style="dim"), soft_wrap=True)
    for line in difference_texts(compared):
        console.print(Text(line), soft_wrap=True)


def study_document(compared: StudyComparison | None) -> dict[str, JsonValue] | None:
    """Return the shares, as parts of 1, as a JSON document; None without a study."""
    if compared is None:
        return None
    return {
        "key": compared.study.key,
        "ownTestbed": [*compared.own_testbed],
        "shares": [_share_document(one) for one in compared.shares],
    }


def _share_document(share: ComparedShare) -> dict[str, JsonValue]:
    published, own = share.published, share.own
    return {
        "name": share.name,
        "experiment": share.experiment,
        "published": {
            "low": published.low,
            "high": published.high,
            "numbers": published.text,
            "origin": published.origin.value,
        },
        "own": {
            "value": own.value,
            "low": own.low,
            "high": own.high,
            "bytesPerSecond": own.rate,
            "ofBytesPerSecond": own.limit,
            "isSuspect": own.is_suspect,
            "missing": own.missing,
        },
    }


_Column = FittedColumn[ComparedShare]
_NAME = _Column(heading="Share", cell=text_of(lambda one: one.name), folded=True)
_PUBLISHED = _Column(heading="Study", cell=text_of(published_text), right=True)
_OWN = _Column(heading="Yours", cell=text_of(lambda one: own_text(one.own)), right=True)
_NUMBERS = _Column(heading="Study's numbers", cell=text_of(lambda one: one.published.text))
_RATES = _Column(heading="Your rates", cell=text_of(lambda one: own_rates_text(one.own)))

_LAYOUTS = ((_NAME, _PUBLISHED, _OWN, _NUMBERS, _RATES), (_NAME, _PUBLISHED, _OWN, _RATES), (_NAME, _PUBLISHED, _OWN))
