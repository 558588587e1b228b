"""Published shares, what measures them again, and a user's own beside them."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.cli import main
from plimsoll.cli.suite_rounds import RoundStart, load_rounds
from plimsoll.measure.hypotheses.select import VariantRun, impossible
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate
from plimsoll.report.page import make_suite_page
from plimsoll.report.view import ReportPage, Section
from plimsoll.studies.library import load_studies, load_study
from plimsoll.studies.model import (
    Form,
    Origin,
    Published,
    PublishedRange,
    PublishedShare,
    Share,
    Study,
    Unit,
    ValuesOf,
    published_range,
)
from plimsoll.suite.children import suite_digest, turns_by_name, variant_plans
from plimsoll.tools.registry import LAYERS
from support.command_line import invoke, write_run
from support.goldens import tables_of, texts, words_of
from support.studies import DEVICE, MINUTE, demo_document, results_of, small_suites, suites_in


def demo_suite() -> BenchmarkSuite:
    """Return the suite of the demo."""
    return decode_suite(demo_document())


def kit_round(path: Path, *, without: Sequence[str] = (), suspect: Sequence[str] = (), **named: str) -> Path:
    """Write a round, and return its directory; variants `without` are not measured, workloads may be Suspect.

    `named` may have another `study`, and another `device` of the variant disk.
    """
    document = demo_document()
    document["metadata"]["annotations"] = {"plimsoll.dev/study": named.get("study", "kit")}
    path.mkdir(exist_ok=True)
    (path / "suite.yaml").write_text(yaml.safe_dump(document))
    suite = decode_suite(document)
    targets: dict[str, tuple[str, ...]] = {variant.name: ("/data",) for variant in suite.spec.variants}
    start = RoundStart(minute=MINUTE, seed=1, digest=suite_digest(suite.spec), targets=targets)
    (path / "round.json").write_text(start.model_dump_json())
    plans = variant_plans(suite, seed=1)
    for name, turn in turns_by_name(suite, minute=MINUTE, seed=1).items():
        if turn.variant not in without:
            results = results_of(turn.variant, plans[turn.variant], suspect, named.get("device", DEVICE))
            write_run(path / name, results)
    return path


SHARES = [(study, share) for study in load_studies() for share in study.shares]
MOST_SECONDS = 510
"""Of the demo's suite, which has 13 minutes: its five runs also need up to 50 seconds each to begin and to end."""


def published(experiment: str, quantity: str, form: Form = Form.PART, **conditions: Any) -> tuple[float, float, str]:
    values = ValuesOf(experiment=experiment, quantity=quantity, conditions=conditions)
    found = published_range(PublishedShare(values=values, form=form), load_study("kit").values)
    return found.low, found.high, found.text


@cache
def plans_in(folder: Path) -> list[dict[str, Plan]]:
    return [variant_plans(suite, seed=1) for suite in suites_in(folder)]


def test_a_share_is_a_part_a_gain_a_loss_or_a_ratio() -> None:
    assert published("KIT-F3", "part of the limit", journal="disk") == (0.28, 0.7, "28 to 70 %")
    low, high, text = published("KIT-F4c", "gain of 16 MB over 4 MB", Form.GAIN)
    assert (low, high) == pytest.approx((1.21, 1.27))
    assert text == "gain of 21 to 27 %"
    low, high, text = published("KIT-F5", "RADOS below RBD", Form.LOSS)
    assert (low, high) == pytest.approx((0.77, 0.94))
    assert text == "loss of 6 to 23 %"
    assert published("KIT-F3", "throughput with 16 OSDs divided by that with 8")[2] == "1.91"


def test_rates_are_shares_of_a_limit_whatever_their_units() -> None:
    """4,738 MB/s of 11 GB/s."""
    found = share_of("ornl", "RADOS writes of the raw devices")
    assert found.low == found.high == pytest.approx(4738 / 11000)
    assert found.text == "4738 MB/s of 11 GB/s"


def origins(values: ValuesOf, *found: Origin) -> Origin:
    """Return the origin of a share whose values have these origins."""
    numbers = [
        Published(
            experiment=values.experiment,
            place="text",
            quantity=values.quantity,
            unit=Unit.PERCENT,
            value=50,
            origin=one,
            conditions={"number": number},
        )
        for number, one in enumerate(found)
    ]
    return published_range(PublishedShare(values=values), numbers).origin


def test_a_share_that_the_study_did_not_publish_has_its_origin() -> None:
    values = ValuesOf(experiment="KIT-F3", quantity="part")
    assert origins(values, Origin.PUBLISHED, Origin.PUBLISHED) is Origin.PUBLISHED
    assert origins(values, Origin.PUBLISHED, Origin.CITED) is Origin.CITED
    assert origins(values, Origin.CITED, Origin.DERIVED) is Origin.DERIVED
    disk, osd = (share_of("kit", "OSD writes of its disk"), share_of("kit", "RADOS reads of the limit of the network"))
    assert disk.origin is Origin.DERIVED, "30 MB/s and 72 MB/s are published, their ratio is not"
    assert osd.origin is Origin.PUBLISHED


def share_of(study: str, name: str) -> PublishedRange:
    found = load_study(study)
    (share,) = [one for one in found.shares if one.name == name]
    return published_range(share.published, found.values)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Ceph's random reads of its writes, 4 KiB", 520 / 262),
        ("Ceph's random reads of its writes, 16 MiB", 210 / 102),
        ("the array's random writes of its reads, 4 KiB", 5604 / 401),
        ("the array's random writes of its reads, 16 MiB", 191 / 171),
        ("Ceph's random reads of the array's, 4 KiB", 520 / 401),
        ("Ceph's random reads of the array's, 16 MiB", 210 / 171),
        ("the array's random writes of Ceph's, 4 KiB", 5604 / 262),
        ("the array's random writes of Ceph's, 16 MiB", 191 / 102),
    ],
)
def test_a_pool_with_three_replicas_stands_beside_the_thesis_with_three_copies(name: str, expected: float) -> None:
    found = share_of("ctu", name)
    assert found.low == found.high == pytest.approx(expected)
    assert (found.place, found.origin) == ("Table B.5", Origin.DERIVED)


def test_a_share_that_a_study_claims_is_its_own_and_not_recalculated() -> None:
    found = share_of("ornl", "RADOS reads of the raw devices")
    assert (found.text, found.origin) == ("70 %", Origin.PUBLISHED)


@pytest.mark.parametrize(("study", "share"), SHARES, ids=lambda one: getattr(one, "name", getattr(one, "key", "")))
def test_every_published_share_is_a_part_of_something(study: Study, share: Share) -> None:
    assert published_range(share.published, study.values).low > 0
    units = {one.unit for one in share.published.values.among(study.values)}
    assert share.published.of or units <= {Unit.PERCENT, Unit.RATIO}


@pytest.mark.parametrize("form", [".", "overlays/smoke", "overlays/full"])
@pytest.mark.parametrize(("study", "share"), SHARES, ids=lambda one: getattr(one, "name", getattr(one, "key", "")))
def test_a_planned_suite_measures_every_share(study: Study, share: Share, form: str) -> None:
    (plans,) = [plans for plans in plans_in(Path(form) / study.key.lower()) if share.variants <= plans.keys()]
    if share.ratio is not None:
        runs = [VariantRun(variant=name, name="", points=plan.points) for name, plan in plans.items()]
        assert impossible(share.ratio.hypothesis(runs), runs) == ()
    if share.layer is not None:
        assert share.layer.layer in {LAYERS[point.tool] for point in plans[share.layer.variant].points}
    (experiment,) = [one for one in study.experiments if one.id == share.experiment]
    assert share.variants & {name for one in experiment.reproduced_by for name in one.variants}


def test_every_suite_of_a_study_names_it() -> None:
    assert {name: suite.metadata.study for name, suite in small_suites().items()} == {
        name: name.removesuffix("-parts") for name in small_suites()
    }


def test_the_demo_fits_into_its_time_and_can_decide_its_hypotheses() -> None:
    suite = demo_suite()
    plans = variant_plans(suite, seed=1)
    assert suite.metadata.study == "kit"
    assert sum(estimate(plan).total_seconds for plan in plans.values()) <= MOST_SECONDS
    runs = [VariantRun(variant=name, name="", points=plan.points) for name, plan in plans.items()]
    assert [impossible(one, runs) for one in suite.spec.hypotheses] == [()] * 8
    names = [one.name for one in suite.spec.hypotheses]
    assert [name for name in names if not name.startswith("replicas")] == [
        "reads-scale-with-osds",
        "writes-scale-with-osds",
        "reads-scale-with-clients",
        "writes-scale-with-clients",
        "rbd-costs",
        "osd-below-half-of-its-disk",
    ]


@pytest.fixture(scope="module")
def round_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit_round(tmp_path_factory.mktemp("study") / "kit", suspect=["rbd"])


def section_of(page: ReportPage) -> Section | None:
    return next((one for one in page.sections if one.key == "study"), None)


def page_of(directory: Path) -> ReportPage:
    return make_suite_page(load_rounds([str(directory)], ()))


EXPECTED = {
    "OSD writes of its disk": ("42 % (derived)", "42 %"),
    "RADOS reads of the limit of the network": ("93 %", "27 %"),
    "RADOS writes of the limit of OSDs and network": ("28 to 70 %", "67 %"),
    "RBD writes of the limit of OSDs and network": ("71 %", "73 % *"),
    "RADOS writes of RBD writes": ("77 to 94 %", "91 % *"),
    "reads with twice the OSDs": ("191 %", "190 %"),
    "writes with three replicas of those with one": ("50 %", "60 %"),
    "reads with three replicas of those with one": ("100 %", "100 %"),
}
"""From the rates of `kit_round`: 3 OSDs with 30 MB/s are 90, and three clients with 111 MB/s have 333."""


def test_a_report_has_both_shares_and_the_difference_of_the_hardware(round_directory: Path) -> None:
    section = section_of(page_of(round_directory))
    (table,) = tables_of(section)
    assert {row[0]: (row[2], row[3]) for row in texts(table)} == EXPECTED
    words = words_of(section)
    assert "32 servers with 8 cores" in words
    assert "Yours: 18.2.7 reef; 3 OSDs on 3 hosts of bluestore with kernel 6.1.0." in words


def test_results_print_the_shares_and_the_hypotheses(round_directory: Path) -> None:
    output = invoke("results", round_directory)
    _, _, tail = output.partition("Compared with KIT (2014)")
    lines = tail.splitlines()
    for name, (before, after) in EXPECTED.items():
        (line,) = [line for line in lines if line.startswith(f"{name} ") and ":" not in line]
        assert f" {before} " in line
        assert f" {after} " in line
    assert "derived: computed from the study's numbers, not published itself" in lines
    rows = [line.split() for line in output.splitlines()]
    verdicts = {row[0]: verdict for row in rows for verdict in HypothesisVerdict if verdict in row}
    assert verdicts["reads-scale-with-osds"] == "Held"
    assert verdicts["rbd-costs"] == "Refuted"
    assert verdicts["osd-below-half-of-its-disk"] == "Held"


def test_a_document_has_the_shares_as_parts(round_directory: Path) -> None:
    done = CliRunner().invoke(main, ["results", str(round_directory), "-o", "json"])
    study = json.loads(done.stdout)["study"]
    assert study["key"] == "KIT"
    first = study["shares"][0]
    assert first["published"]["low"] == pytest.approx(30 / 72)
    assert [one["published"]["origin"] for one in study["shares"][:2]] == ["Derived", "Published"]
    assert first["own"]["value"] == pytest.approx(30 / 72, rel=0.001)
    assert first["own"]["ofBytesPerSecond"] == pytest.approx(3 * 72e6, rel=0.001)


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    kit_round(tmp_path / "kit", without=["disk", "size-3"])
    (table,) = tables_of(section_of(page_of(tmp_path / "kit")))
    rows = {row[0]: row for row in texts(table)}
    assert rows["OSD writes of its disk"][3] == "-"
    assert rows["OSD writes of its disk"][-1] == "variant disk has no complete run"
    assert rows["writes with three replicas of those with one"][3] == "-"
    assert rows["reads with twice the OSDs"][3] == "190 %"


def test_a_volume_of_ceph_is_no_device_below_its_osds(tmp_path: Path) -> None:
    kit_round(tmp_path / "kit", device="rbd0")
    (table,) = tables_of(section_of(page_of(tmp_path / "kit")))
    rows = {row[0]: row for row in texts(table)}
    assert rows["OSD writes of its disk"][3:] == [
        "-",
        "-",
        "30 MB/s of 72 MB/s",
        "text",
        "85.8 MiB/s",
        "the limit of layer OSD is unknown",
    ]
    assert rows["RADOS writes of the limit of OSDs and network"][3] == "67 %"


@pytest.mark.parametrize("study", ["blog", "none", "KIT"])
def test_a_suite_of_no_known_study_has_no_such_section(tmp_path: Path, study: str) -> None:
    """`blog` publishes no shares."""
    directory = kit_round(tmp_path / "kit", study=study)
    assert section_of(page_of(directory)) is None
    assert "Compared with" not in invoke("results", directory)
