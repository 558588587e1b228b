"""What `make demo-study` prints when its suite was measured, against a real kube-apiserver."""

import uuid
from pathlib import Path

import pytest

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import child_name, suite_digest, turns_of, variant_plans, variant_spec
from support.apiserver import ApiServer
from support.command_line import GROUP, TIME, Bench, owned_run
from support.studies import MINUTE, demo_document, results_of

pytestmark = pytest.mark.crd


@pytest.fixture
def bench(apiserver: ApiServer, tmp_path: Path) -> Bench:
    """Return a namespace in which the suite has ended a round with rates like those of the study."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    path = f"{GROUP}/namespaces/{namespace}/benchmarksuites"
    made = apiserver.request("POST", path, demo_document()).expect(201)
    bench = Bench(apiserver=apiserver, namespace=namespace, directory=tmp_path, uid=made["metadata"]["uid"])
    suite = decode_suite(made)
    measure(bench)
    ended = {
        "minute": MINUTE,
        "cause": "Change",
        "startTime": TIME,
        "completionTime": TIME,
        "verdict": "NoRegression",
        "digest": suite_digest(suite.spec),
    }
    display = {"status": "Idle", "message": "no round is due"}
    bench.say({"observedGeneration": 1, "display": display, "rounds": [ended]}, "benchmarksuites", "kit")
    return bench


def measure(bench: Bench) -> None:
    """Create the runs of the round with their results."""
    suite = decode_suite(demo_document())
    plans = variant_plans(suite, seed=1)
    variants = {variant.name: variant for variant in suite.spec.variants}
    for turn in turns_of(suite.spec, MINUTE):
        name = child_name(suite, turn, MINUTE, bench.uid)
        run = owned_run(name, "True", bench.uid)
        run["metadata"] |= {"namespace": bench.namespace}
        run["metadata"]["labels"] = {"plimsoll.dev/suite": "kit", "plimsoll.dev/variant": turn.variant}
        run["metadata"]["ownerReferences"][0]["name"] = "kit"
        run["spec"] = variant_spec(suite.spec.run, variants[turn.variant])
        bench.apiserver.request("POST", bench.path("benchmarkruns"), run).expect(201)
        bench.say(run["status"], "benchmarkruns", name)
        for result in results_of(turn.variant, plans[turn.variant]):
            document = result.model_dump(mode="json", exclude_none=True)
            document["metadata"] = {
                "name": f"{name}-{result.spec.point}",
                "namespace": bench.namespace,
                "labels": {"plimsoll.dev/run": name},
            }
            document["spec"]["run"] = name
            bench.apiserver.request("POST", bench.path("benchmarkresults"), document).expect(201)
            bench.say(document["status"], "benchmarkresults", document["metadata"]["name"])


def test_the_demo_shows_hypotheses_and_shares_of_a_suite_in_a_cluster(bench: Bench) -> None:
    config = bench.config(namespace=bench.namespace)
    shown = bench.kubectl("watch", "bsuite/kit", "--timeout", "30s", config=config)
    assert shown.returncode == 0, shown
    verdicts = [line.split()[:2] for line in shown.stdout.splitlines() if line]
    assert ["reads-scale-with-osds", "Held"] in verdicts
    assert ["rbd-costs", "Refuted"] in verdicts
    _, _, beside = shown.stdout.partition("Compared with KIT (2014)")
    lines = [" ".join(line.split()) for line in beside.splitlines()]
    assert "OSD writes of its disk 42 % (derived) 42 % 30 MB/s of 72 MB/s 85.8 MiB/s of 206.0 MiB/s" in lines
    assert any(line.startswith("RADOS writes of the limit of OSDs and network 28 to 70 % 67 %") for line in lines)

    report = bench.directory / "kit.html"
    written = bench.kubectl("report", "bsuite/kit", "--html", str(report), config=config)
    assert written.returncode == 0, written
    assert "Compared with KIT (2014)" in report.read_text()


def test_the_layers_of_the_demo_are_those_of_two_of_its_runs(bench: Bench) -> None:
    suite = decode_suite(demo_document())
    names = {turn.variant: child_name(suite, turn, MINUTE, bench.uid) for turn in turns_of(suite.spec, MINUTE)}
    config = bench.config(namespace=bench.namespace)
    arguments = ("layers", names["osds-all"], "--device-run", names["disk"])
    shown = bench.kubectl(*arguments, config=config)
    assert shown.returncode == 0, shown
    assert "OSD writes reach 42 % of the limit set by the devices." in shown.stdout
    assert "RADOS writes reach 67 % of the limit set by the OSDs." in shown.stdout
