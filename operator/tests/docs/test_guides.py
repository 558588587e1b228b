"""The files, values and commands in the guides exist, and samples name the values that they need."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api.names import API_VERSION
from plimsoll.api.run import RunSpec, load_run
from plimsoll.api.suite import SuiteSpec, load_suite
from plimsoll.cli import main
from plimsoll.plan.expand import expand
from plimsoll.suite.children import merged_spec, variant_plans

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
GUIDES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")),
    *(ROOT / name / "README.md" for name in ("charts/plimsoll", "manifests/samples")),
    *PAGES,
    *sorted((ROOT / "e2e").glob("*/README.md")),
]
SAMPLES = [
    *sorted((ROOT / "manifests" / "samples").glob("*.yaml")),
    *sorted((ROOT / "manifests" / "demos").glob("*.yaml")),
    ROOT / "manifests" / "gitops" / "suite" / "suite.yaml",
]
CHART = yaml.safe_load((ROOT / "charts" / "plimsoll" / "values.yaml").read_text())
FILE = re.compile(r"\b(?<!/)(?:manifests|charts|e2e|docs|hack)/[\w./-]*\w")
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
CODE = re.compile(r"^```\w*\n.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|`|kubectl )plimsoll ([a-z]+)((?: [^`|;#\n]*)?)", re.MULTILINE)
OPTION = re.compile(r"(?<=\s)--?[a-z][a-z-]*")
TARGET = re.compile(r"(?:^|`)make ([a-z0-9-]+)", re.MULTILINE)

guides = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))


def blocks(guide: Path, language: str) -> list[str]:
    """Return the blocks of a language; of commands and what they print, it is empty."""
    return re.findall(rf"^```{language}\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)


def code(guide: Path) -> str:
    """Return a page's code, each command on one line."""
    return "\n".join(CODE.findall(guide.read_text())).replace("\\\n", " ")


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_first_page_is_short_and_its_code_does_not_scroll() -> None:
    page = ROOT / "README.md"
    assert len(page.read_text().splitlines()) <= 150
    assert [line for text in blocks(page, r"\w*") for line in text.splitlines() if len(line) > 90] == []


@guides
def test_files_are_there(guide: Path) -> None:
    named = set(FILE.findall(guide.read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()


@guides
def test_links_lead_somewhere(guide: Path) -> None:
    for name, anchor in LINK.findall(CODE.sub("", guide.read_text())):
        target = (guide.parent / name).resolve() if name else guide
        assert target.exists(), name
        assert not anchor or anchor in anchors(target), f"{name}#{anchor}"


@pytest.mark.parametrize("guide", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_begins_with_its_title_and_its_lists_are_lists_on_the_site_too(guide: Path) -> None:
    """MkDocs needs an empty line before a list, and four spaces before lists and code in it; GitHub does not."""
    prose = re.sub(r"^```.*?^```$", "```", guide.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert [prose.splitlines()[0]] == re.findall(r"^# .*", prose, re.MULTILINE)
    assert re.findall(r"^ {1,3}(?:[-*] |\d+\. |```).*", prose, re.MULTILINE) == []
    assert re.findall(r"^(?![-*] |\d+\. | |$).*\n(?:[-*]|\d+\.) .*", prose, re.MULTILINE) == []


@guides
def test_commands_and_options_are_those_of_the_command_line_and_targets_those_of_make(guide: Path) -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(TARGET.findall(code(guide))) <= set(targets)
    for name, arguments in COMMAND.findall(code(guide)):
        command = main.get_command(None, name)  # type: ignore[arg-type]
        # The programs of pods, which users do not start, are not described by --help.
        assert command or name in {"operator", "conductor", "teardown", "agent", "caches", "burner"}, name
        if command:
            options = {option for parameter in command.params for option in parameter.opts} | {"-h", "--help"}
            assert set(OPTION.findall(arguments)) <= options, name


def unknown_values(given: Any, chart: Any, path: str = "") -> list[str]:
    """Return the paths of values that the chart does not have; what is below an empty default is free."""
    if not isinstance(given, dict) or not chart:
        return []
    inner = [unknown_values(part, chart[name], f"{path}{name}.") for name, part in given.items() if name in chart]
    return [f"{path}{name}" for name in given if name not in chart] + [name for names in inner for name in names]


# What a part of a run or a suite is completed with before it is checked.
RUN = yaml.safe_load("""
storage: {storageClass: {name: fast}, volume: {size: 10Gi}}
clients: {count: 4}
workloads: [{name: part, fio: {pattern: randread, blockSize: [4Ki], ioDepth: [1]}}]
""")
ROOK_RUN = RUN | yaml.safe_load("""
storage:
  rook: {cluster: {namespace: rook-ceph, name: rook-ceph}, pool: {replicated: {size: 3}}}
  volume: {size: 10Gi, access: LibRBD}
""")
# Configuration of Flux, Prometheus and Otava.
FOREIGN = {"healthChecks", "scrape_configs", "tests"}


def check_run(spec: Any) -> None:
    document = {"apiVersion": API_VERSION, "kind": "BenchmarkRun", "metadata": {"name": "part"}, "spec": spec}
    expand(load_run(yaml.safe_dump(document)))


def check_part(document: Any) -> None:
    """Check a part of a specification, or values of the chart."""
    part = {"workloads": document} if isinstance(document, list) else document.get("spec", document)
    if part.keys() <= RunSpec.model_json_schema()["properties"].keys():
        run = ROOK_RUN if "rook" in part.get("storage", {}) else RUN
        check_run(merged_spec(run, part) | {"workloads": part.get("workloads", run["workloads"])})
    elif part.keys() <= SuiteSpec.model_json_schema()["properties"].keys():
        variants = [{"name": name} for name in {"part", *re.findall(r"variant: ([\w-]+)", yaml.safe_dump(part))}]
        document = {"apiVersion": API_VERSION, "kind": "BenchmarkSuite", "metadata": {"name": "part"}}
        load_suite(yaml.safe_dump(document | {"spec": {"run": RUN, "variants": variants} | part}))
    elif not part.keys() <= FOREIGN:
        assert unknown_values(part, CHART) == []


@guides
def test_yaml_is_valid_whatever_it_is_a_part_of(guide: Path) -> None:
    for text in blocks(guide, "yaml"):
        for document in yaml.safe_load_all(text):
            kind = document.get("kind") if isinstance(document, dict) else None
            if kind == "BenchmarkRun":
                check_run(document["spec"])
            elif kind == "BenchmarkSuite":
                variant_plans(load_suite(text), seed=1)
            elif kind is None:
                check_part(document)


def test_every_group_of_values_is_in_the_guides_for_administrators() -> None:
    names = ("how-to/install.md", "how-to/allow.md", "reference/configuration.md")
    guides = "".join((ROOT / "docs" / name).read_text() for name in names)
    groups = [name for name, value in CHART.items() if isinstance(value, dict) and value]
    assert [name for name in groups if not re.search(rf"`{name}\b|^{name}:", guides, re.MULTILINE)] == []


def needed_values(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the chart without which the operator refuses such a run in the namespace bench."""
    storage = spec.get("storage", {})
    values: dict[str, Any] = {}
    keyrings: list[str] = []
    tools = {name: parameters for workload in spec["workloads"] for name, parameters in workload.items()}
    if rook := storage.get("rook"):
        cluster = "{namespace}/{name}".format_map(rook.get("cluster", {"namespace": "rook-ceph", "name": "rook-ceph"}))
        values["rook"] = {"clusters": {cluster: ["bench"]}}
        if "disturb" in tools:
            values["disturb"] = {cluster: ["*"]}
        if "config" in rook:
            values["rook"]["options"] = {cluster: [option["name"] for option in rook["config"]]}
    if ceph := storage.get("ceph"):
        keyrings.append(ceph["keyringSecret"]["name"])
    if "osdBench" in tools:
        values["osdBench"] = {"enabled": True}
        keyrings.append(tools["osdBench"]["keyringSecret"]["name"])
    for name, is_used in (("caches", spec.get("prepare", {}).get("dropCaches")), ("kubeBurner", "kubeBurner" in tools)):
        if is_used:
            values[name] = {"enabled": True, "namespaces": ["bench"]}
    if keyrings:
        values["ceph"] = {"keyrings": {"bench": keyrings}}
    return values


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_first_comment_of_a_sample_has_the_values_that_it_needs(sample: Path) -> None:
    text = sample.read_text()
    spec = yaml.safe_load(text)["spec"]
    if "run" in spec:
        spec = merged_spec(spec["run"], spec["variants"][0].get("set", {}))
    _, _, comment = text.partition("# Values of the chart, for runs in the namespace bench:\n")
    stated = "".join(re.findall(r"\A(?:#   .*\n)*", comment)).replace("#   ", "")
    assert (yaml.safe_load(stated) or {}) == needed_values(spec)
    assert unknown_values(needed_values(spec), CHART) == []
    # The StorageClass of kind has no raw devices.
    storage = spec.get("storage", {})
    is_raw = storage.get("volume", {}).get("mode") == "Block"
    assert not (is_raw and storage.get("storageClass", {}).get("name") == "standard")
