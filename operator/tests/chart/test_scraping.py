"""A real Prometheus with the documented configuration scrapes a conductor, and pods that are labelled like one."""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from prometheus_client.exposition import generate_latest

from chart.rendering import Document, Rendering
from plimsoll.api.names import Operation, Outcome, RunPhase, Verdict
from plimsoll.api.status import CurrentTrial, Live, LiveRate, Prefill, RunState, TrialKey
from plimsoll.cli.launch import free_port
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Source
from plimsoll.metrics.live import LiveView, live_snapshot
from support.client_documents import make_plan
from support.results import measured, trial

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "metrics.md"
KEY = TrialKey(point="w" * 60, pass_number=99, attempt=9)
POINT = make_plan(points=1).points[0].model_copy(update={"name": KEY.point, "label": "ü" * 256})
EVERYTHING = LiveView(
    namespace="bench",
    run="nightly",
    now=1000.0,
    state=RunState(
        phase=RunPhase.MEASURING,
        prefill=Prefill(done_bytes=5, total_bytes=20),
        current=CurrentTrial(key=KEY, label="", clients=(0,), starts_at=900, ends_at=1100),
        live=Live(clients=1, rates=tuple(LiveRate(operation=one, iops=1, bytes_per_second=1) for one in Operation)),
    ),
    planned=2,
    armed=0,
    measuring=0,
    attempts={(outcome, verdict): 1 for outcome in Outcome for verdict in Verdict},
    trial=(POINT, KEY),
    is_running=True,
    last=(POINT, trial(0, *(measured(1, operation=one) for one in Operation))),
    gate_open=True,
)
"""All that a conductor can expose, with the longest description of a point."""

FORGED = """\
plimsoll_live_gate_open{namespace="bench",run="nightly"} 0
plimsoll_live_clients{exported_namespace="bench",pod="nightly-conductor-a",job="plimsoll",run="nightly"} 0
plimsoll_live_phase{namespace="bench",run="nightly",phase="Measuring"} 1 1000
plimsoll_result_verdict{namespace="bench",run="nightly",workload="w",point="w-000",verdict="Valid"} 1
plimsoll_operator_info{version="0"} 1
kube_pod_info{namespace="bench"} 1
"""

Answer = tuple[int, Mapping[str, str], bytes]


def scrape_configs() -> dict[str, Document]:
    """Return the documented configuration, by job."""
    (block,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", DOCUMENT.read_text(), re.DOTALL)
    return {job["job_name"]: job for job in yaml.safe_load(block)["scrape_configs"]}


@pytest.mark.chart
def test_the_pod_monitor_is_the_documented_configuration(everything: Rendering) -> None:
    def snake(name: str) -> str:
        return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)

    conductors = scrape_configs()["plimsoll-conductors"]
    spec = everything.one("PodMonitor", "plimsoll-conductors")["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    assert (endpoint["port"], endpoint["path"], endpoint["interval"]) == ("metrics", "/metrics", "1m30s")
    settings = {snake(name): value for name, value in (spec | endpoint).items()}
    settings["metric_relabel_configs"] = [
        {snake(name): value for name, value in rule.items()} for rule in settings.pop("metric_relabelings")
    ]
    assert settings.pop("honor_labels") is conductors.get("honor_labels", False) is False
    # How the kinds name what they discover, and the interval.
    discovery = {"namespace_selector", "selector", "pod_metrics_endpoints", "port", "path", "interval"}
    assert {name: value for name, value in settings.items() if name not in discovery} == {
        name: value
        for name, value in conductors.items()
        if name not in {"job_name", "kubernetes_sd_configs", "relabel_configs"}
    }


@contextmanager
def exposing(answer: Answer) -> Iterator[str]:
    """Give one answer to every request, and yield the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the library's
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def text(body: str) -> Answer:
    return 200, {"Content-Type": "text/plain; version=0.0.4"}, body.encode()


class Prometheus:
    """The API of a Prometheus."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer."""
        with urlopen(f"{self._address}/{path}?{urlencode(parameters)}", timeout=5) as answer:  # noqa: S310 - http
            return json.load(answer)["data"]

    def errors(self) -> dict[str, str]:
        """Return the error of every pod that was scraped, empty for a scrape that succeeded."""
        try:
            targets = self.get("targets")["activeTargets"]
        except URLError:
            return {}
        return {one["labels"]["pod"]: one["lastError"] for one in targets if one["health"] != "unknown"}

    def series(self) -> list[dict[str, str]]:
        """Return the labels of all series except those that Prometheus itself adds about a scrape."""
        query = '{job="plimsoll-conductors",__name__!~"up|scrape_.+"}'
        return [one["metric"] for one in self.get("query", query=query)["result"]]


@contextmanager
def scraping(directory: Path, pods: Mapping[str, str]) -> Iterator[Prometheus]:
    """Run a Prometheus that finds pods with the labels of a conductor, `namespace/name`, at addresses."""
    job = scrape_configs()["plimsoll-conductors"]
    del job["kubernetes_sd_configs"]
    conductor = {
        "__meta_kubernetes_pod_label_app_kubernetes_io_managed_by": "plimsoll",
        "__meta_kubernetes_pod_label_app_kubernetes_io_component": "conductor",
        "__meta_kubernetes_pod_container_port_name": "metrics",
    }
    job["static_configs"] = []
    for place, address in pods.items():
        namespace, name = place.split("/")
        labels = {"__meta_kubernetes_namespace": namespace, "__meta_kubernetes_pod_name": name, **conductor}
        job["static_configs"].append({"targets": [address], "labels": labels})
    config, log, port = directory / "prometheus.yml", directory / "log", free_port()
    config.write_text(yaml.safe_dump({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))
    promtool = os.environ.get("PLIMSOLL_PROMTOOL", "")
    program = Path(promtool).with_name("prometheus")
    if not os.access(program, os.X_OK):
        pytest.fail(f"PLIMSOLL_PROMTOOL={promtool} has no prometheus beside it; run `make test-all`", pytrace=False)
    command = [str(program), f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}"]
    with (
        log.open("w") as output,
        subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            yield Prometheus(port)
        finally:
            process.kill()


@pytest.mark.chart
def test_a_pod_that_is_only_labelled_like_a_conductor_cannot_forge_series_of_others(tmp_path: Path) -> None:
    with ExitStack() as stack:
        elsewhere = stack.enter_context(exposing(text("plimsoll_live_gate_open 1\n")))
        labels = ",".join(f'l{number}="x"' for number in range(40))
        answers = {
            "bench/nightly-conductor-a": text(generate_latest(live_snapshot(EVERYTHING)).decode()),
            "stranger/forges": text(FORGED),
            "stranger/many": text("".join(f'plimsoll_live_phase{{run="{number}"}} 1\n' for number in range(1000))),
            "stranger/huge": text(f"# {'x' * 2**20}\nplimsoll_live_phase 1\n"),
            "stranger/labelled": text(f"plimsoll_live_phase{{{labels}}} 1\n"),
            "stranger/long": text(f'plimsoll_live_phase{{phase="{"x" * 2000}"}} 1\n'),
            "stranger/redirects": (302, {"Location": f"http://{elsewhere}/metrics"}, b""),
        }
        pods = {place: stack.enter_context(exposing(answer)) for place, answer in answers.items()}
        prometheus = stack.enter_context(scraping(tmp_path, pods))
        deadline = time.monotonic() + 60
        while len(errors := prometheus.errors()) < len(pods):
            assert time.monotonic() < deadline, f"{errors}\n{(tmp_path / 'log').read_text()}"
            time.sleep(0.1)
        series = prometheus.series()

    assert {pod for pod, error in errors.items() if not error} == {"nightly-conductor-a", "forges"}
    for pod, error in {
        "many": "sample limit exceeded",
        "huge": "body size limit exceeded",
        "labelled": "label_limit exceeded",
        "long": "label_value_length_limit exceeded",
        "redirects": "302",
    }.items():
        assert error in errors[pod]

    honest = [labels for labels in series if labels["pod"] == "nightly-conductor-a"]
    assert {labels["__name__"] for labels in honest} == {
        metric.name for metric in catalogue.METRICS if metric.source is Source.CONDUCTOR
    }
    target = {"job": "plimsoll-conductors", "pod": "nightly-conductor-a", "instance": pods["bench/nightly-conductor-a"]}
    exposed = [
        {**target, "__name__": sample.name, **sample.labels}
        for family in live_snapshot(EVERYTHING).collect()
        for sample in family.samples
    ]
    assert sorted(map(sorted, map(dict.items, honest))) == sorted(map(sorted, map(dict.items, exposed)))

    forged = [labels for labels in series if labels["pod"] != "nightly-conductor-a"]
    assert {labels["__name__"] for labels in forged} == {
        "plimsoll_live_gate_open",
        "plimsoll_live_clients",
        "plimsoll_live_phase",
    }
    assert {(labels["namespace"], labels["pod"]) for labels in forged} == {("stranger", "forges")}
    assert not any(name.startswith("exported_") for labels in forged for name in labels)
