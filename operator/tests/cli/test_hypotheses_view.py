"""Decided hypotheses on a terminal and as a document."""

import io
import json

import pytest
from rich.console import Console

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.cli.results import show_hypotheses
from plimsoll.measure.hypotheses.decide import Decision, decide
from support.results import RATIO, SCALING, hypothesis, point, run_of_points

AROUND = (0.99, 1.0, 1.01)


def decisions() -> tuple[Decision, ...]:
    """Return one that held, one that is refuted on a Suspect point, and one that is undecided, in two variants."""
    runs = []
    for number, (variant, rbd, power) in enumerate((("size-3", 0.95, 0.9), ("ec-4-2", 0.7, 0.2))):
        findings = (Finding(reason="NodeCpuSaturated", verdict=Verdict.SUSPECT, message="m"),) if number else ()
        rados = (
            point(f"rados-{n:03d}", [1e6 * n**power * one for one in AROUND], clients=n, objectSize="4Mi")
            for n in (1, 2, 4, 8)
        )
        slow = point("rbd-000", [rbd * 1e6 * 8**power * one for one in AROUND], findings=findings, blockSize="4Mi")
        verdict = Verdict.SUSPECT if number else Verdict.VALID
        slow = slow.model_copy(update={"status": slow.status.model_copy(update={"verdict": verdict})})
        runs.append(run_of_points(slow, *rados, variant=variant, name=f"layouts-{variant}-29387520-0"))
    given = [hypothesis(), hypothesis(SCALING), hypothesis(RATIO, name="gone", of=GONE)]
    return tuple(decision for each in given for decision in decide(each, runs))


GONE = {"workload": "rado", "quantity": "bytesPerSecond"}


def shown(columns: int) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    with console.capture() as capture:
        show_hypotheses(console, decisions())
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_table_fits_100_columns() -> None:
    lines = shown(100)
    end = lines.index("* rests on Suspect points")
    assert all(len(line) <= 100 for line in lines[: end + 1])
    assert lines[0].split() == ["Hypothesis", "Verdict", "Estimate", "95", "%", "interval", "Expected", "From"]
    assert [" ".join(line.split()) for line in lines[1:5]] == [
        "rbd-close-to-rados Held 95 % 93 to 97 % at least 90 % 3+3 trials",
        "size-3",
        "rbd-close-to-rados Refuted * 70 % 68 to 72 % at least 90 % 3+3 trials",
        "ec-4-2",
    ]
    assert " ".join(lines[5].split()) == "scales-with-clients Held 0.90 0.89 to 0.91 at least 0.8 9 trials"
    assert lines[9].split() == ["gone", "Undecided", "-", "-", "at", "least", "90", "%", "-"]


def test_sentences_follow_the_table() -> None:
    lines = shown(100)
    sentences = lines[lines.index("* rests on Suspect points") + 1 :]
    assert sentences[0] == (
        "rbd-close-to-rados: In size-3, rbd (blockSize 4Mi, clients 8) reaches 95 % (93 to 97) of the throughput of "
        "rados (objectSize 4Mi, clients 8); at least 90 % was expected: Held."
    )
    assert sentences[1].endswith("at least 90 % was expected: Refuted, on Suspect points.")
    assert sentences[4] == (
        "gone: Undecided in size-3: of.workload: run layouts-size-3-29387520-0 (variant size-3) has no workload rado; "
        "did you mean rados?"
    )


def test_notes_are_shown_once() -> None:
    lines = shown(100)
    (note,) = [line for line in lines if "noise between runs is not counted" in line]
    assert note.startswith("rbd-close-to-rados, scales-with-clients: noise between runs")
    assert "rbd-close-to-rados, gone: Suspect (NodeCpuSaturated): rbd-000 of run layouts-ec-4-2-29387520-0" in lines


def test_further_reasons_are_listed() -> None:
    both = hypothesis(RATIO, left={**GONE, "workload": "rdb"}, of=GONE)
    found = decide(both, [run_of_points(point("rbd-000", [1, 2, 3]))])
    console = Console(file=io.StringIO(), width=100, color_system=None)
    with console.capture() as capture:
        show_hypotheses(console, found)
    assert capture.get().splitlines()[-1] == (
        "rbd-close-to-rados: Undecided: left.workload: run r1 has no workload rdb; did you mean rbd? (and 1 more). "
        "of.workload: run r1 has no workload rado; it has rbd."
    )


@pytest.mark.parametrize(
    ("columns", "omitted"),
    [(80, "From"), (66, "Estimate, From"), (45, "Estimate, 95 % interval, Expected, From")],
)
def test_narrow_terminals_have_fewer_columns(columns: int, omitted: str) -> None:
    text = " ".join(shown(columns))
    assert f"No room for {omitted}: use a wider terminal, or -o json." in text
    assert "Held" in text


def test_nothing_is_shown_without_hypotheses() -> None:
    console = Console()
    with console.capture() as capture:
        show_hypotheses(console, ())
    assert not capture.get()


def test_the_document_has_all_numbers() -> None:
    document = [json.loads(json.dumps(decision.model_dump(mode="json"))) for decision in decisions()]
    first = document[0]
    assert (first["name"], first["variant"], first["verdict"], first["form"]) == (
        *("rbd-close-to-rados", "size-3"),
        *("Held", "Ratio"),
    )
    assert first["estimate"] == pytest.approx(0.95)
    assert (first["atLeast"], first["atMost"], first["unit"], first["replicates"]) == (0.9, None, "Trial", [3, 3])
    assert [one["point"] for one in first["basis"]] == ["rbd-000", "rados-008"]
    assert [one["verdict"] for one in document] == ["Held", "Refuted", "Held", "Refuted", "Undecided", "Undecided"]
    assert document[4]["estimate"] is None
