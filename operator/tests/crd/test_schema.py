"""The CRDs: they are valid, and agree with the models on fields, defaults and bounds."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from crd.schemas import BOUNDS, Schema, schema_of, walk
from plimsoll.api.names import GROUP, RESULT_KIND, RUN_KIND, SUITE_KIND, VERSION
from plimsoll.api.quantity import parse_quantity
from plimsoll.api.result import ResultSpec, ResultStatus
from plimsoll.api.run import MAX_AXIS_VALUES, RunSpec
from plimsoll.api.status import BenchmarkRunStatus, ResultDisplay
from plimsoll.api.suite import SuiteSpec
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.tools.base import AnyTool
from plimsoll.tools.registry import TOOLS
from support.apiserver import Document

_OTHER_NAMES = {"ge": "minimum", "le": "maximum", "multiple_of": "multipleOf"}
"""What pydantic calls a bound that it cannot express together with a validator -> what it is."""


def model_schema(model: type[BaseModel], *, written: bool = False) -> Schema:
    """Return a model's schema without references and nulls: of what it reads, or of what it writes."""
    schema = model.model_json_schema(by_alias=True, mode="serialization" if written else "validation")
    plain = _plain(schema, schema.get("$defs", {}))
    assert isinstance(plain, dict)
    return plain


def differences(model: Schema, crd: Schema, path: str) -> Iterator[str]:
    """Yield where a definition's schema says something else than a model's."""
    if not model:
        return  # any JSON value
    yield from _own_differences(model, crd, path)
    yield from _default_differences(model, crd, path)
    fields, crd_fields = model.get("properties", {}), crd.get("properties", {})
    if fields:
        yield from (f"{path}.{name}: only in the model" for name in sorted(fields.keys() - crd_fields.keys()))
        yield from (f"{path}.{name}: only in the definition" for name in sorted(crd_fields.keys() - fields.keys()))
        if set(model.get("required", ())) != set(crd.get("required", ())):
            yield f"{path}: required {sorted(model.get('required', ()))}, not {sorted(crd.get('required', ()))}"
    for name in fields.keys() & crd_fields.keys():
        yield from differences(fields[name], crd_fields[name], f"{path}.{name}".lstrip("."))
    if "items" in model:
        yield from differences(model["items"], crd.get("items", {}), f"{path}[]")
    if isinstance(model.get("additionalProperties"), dict) and "additionalProperties" in crd:
        yield from differences(model["additionalProperties"], crd["additionalProperties"], f"{path}{{}}")


def _own_differences(model: Schema, crd: Schema, path: str) -> Iterator[str]:
    kind = "integer" if crd.get("x-kubernetes-int-or-string") else crd.get("type")
    if model.get("type") != kind:
        yield f"{path}: type {model.get('type')}, not {kind}"
    bounds = {_OTHER_NAMES.get(key, key): value for key, value in model.items()}
    # The form of a quantity, which a model reads into a number.
    of_form = {"pattern", "maxLength"} if crd.get("x-kubernetes-int-or-string") else set()
    for bound in (bound for bound in BOUNDS if bound not in of_form):
        if bounds.get(bound) != crd.get(bound):
            yield f"{path}: {bound} {bounds.get(bound)}, not {crd.get(bound)}"


def _default_differences(model: Schema, crd: Schema, path: str) -> Iterator[str]:
    default, crd_default = model.get("default"), _filled(crd, crd.get("default"))
    if isinstance(default, dict):
        default = {key: value for key, value in default.items() if value is not None}
    if crd.get("items", {}).get("x-kubernetes-int-or-string") and crd_default:
        crd_default = [parse_quantity(value) for value in crd_default]
    if crd.get("x-kubernetes-int-or-string") and crd_default:
        crd_default = parse_quantity(crd_default)
    # A factory's empty value stands in no schema of a model.
    if crd_default != default and not (default is None and not crd_default and crd_default is not False):
        yield f"{path}: default {json.dumps(default)}, not {json.dumps(crd_default)}"


def _filled(crd: Schema, value: Any) -> Any:
    """Return a default as the API server stores it, with the defaults within."""
    if not isinstance(value, dict):
        return value
    fields = crd.get("properties", {}).items()
    inner = {name: _filled(field, field["default"]) for name, field in fields if "default" in field}
    return inner | value


def _plain(schema: Any, definitions: Schema) -> Any:
    if isinstance(schema, list):
        return [_plain(part, definitions) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain(definitions[schema["$ref"].rpartition("/")[2]], definitions) | _plain(rest, definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain(choices[0], definitions) | _plain(rest, definitions)
    if "const" in schema:
        return {"type": "string", "enum": [schema["const"]]}
    return {
        key: {name: _plain(field, definitions) for name, field in value.items()}
        if key == "properties"
        else value
        if key == "default"
        else _plain(value, definitions)
        for key, value in schema.items()
        if key not in ("$defs", "title", "description")
    }


def run_spec_schema() -> Schema:
    """Return the schema of a run's specification, with the tools where the workloads have them."""
    schema = dict(model_schema(RunSpec))
    workload = schema["properties"]["workloads"]["items"]
    for name in ("tool", "parameters"):
        del workload["properties"][name]
        workload["required"].remove(name)
    workload["properties"] |= {key: _tool_schema(tool) for key, tool in TOOLS.items()}
    return schema


def _tool_schema(tool: AnyTool) -> Schema:
    schema = dict(model_schema(tool.parameters))
    for axis in tool.parameters.axes:
        item = dict(schema["properties"][axis])
        default = {"default": [item.pop("default")]} if "default" in item else {}
        axis_schema = {"type": "array", "items": item, "minItems": 1, "maxItems": MAX_AXIS_VALUES, **default}
        schema["properties"][axis] = axis_schema
    return schema


KINDS = pytest.mark.parametrize("kind", [RUN_KIND, RESULT_KIND, SUITE_KIND])

BY_KUBERNETES = "Kubernetes bounds it; the models hand it on"
EXCEPTIONS = {
    r"spec\.(clients|conductor)\.(resources|nodeSelector)\b.*": BY_KUBERNETES,
    r"spec\.podTemplate\.(labels|annotations|tolerations|priorityClassName|runtimeClassName)\b.*": BY_KUBERNETES,
    r"spec\.podTemplate\.(imagePullSecrets|env): maxItems None, not .*": BY_KUBERNETES,
    r"spec\.storage\.volume\.size: (minimum|maximum) .*": "said by a rule, in quantities",
    r"spec\.clients\.networkBytesPerSecond: (minimum|maximum) .*": "said by a rule, in quantities",
    r"spec\.workloads\[\]\.kubeBurner\.volumeSize: (minimum|maximum) .*": "said by a rule, in quantities",
    r"spec\.servers\.nodeSelector(\{\})?: (maxProperties|maxLength) None": BY_KUBERNETES,
}
"""Difference, as a pattern -> why it is one."""


def unexplained(found: Iterable[str], exceptions: dict[str, str]) -> tuple[list[str], list[str]]:
    """Return differences without an explanation, and explanations without a difference."""
    lines = sorted(found)
    plain = [line for line in lines if not any(re.match(pattern, line) for pattern in exceptions)]
    stale = [pattern for pattern in exceptions if not any(re.match(pattern, line) for line in lines)]
    return plain, stale


def test_specification_of_a_run_is_that_of_the_models(definitions: dict[str, Document]) -> None:
    crd = schema_of(definitions[RUN_KIND])["properties"]["spec"]
    assert unexplained(differences(run_spec_schema(), crd, "spec"), EXCEPTIONS) == ([], [])


def test_status_of_a_run_is_that_of_the_models(definitions: dict[str, Document]) -> None:
    crd = schema_of(definitions[RUN_KIND])["properties"]["status"]
    exceptions = {
        r"status: default null": "a new run has a status before anybody writes one",
        r"status\.observedGeneration: default -1": "the default of the whole status says it",
        r"status\.(conditions|headline): default \[\]": "written, not defaulted",
        r"status\.points\.\w+: default 0": "written, not defaulted",
        r"status\.headline\[\]\.line\.(estimate|low|high): minimum None": "only the operator writes it",
        r"status\.conditions\[\]: required": "set_condition adds the time",
        r"status\.conditions\[\]\.(observedGeneration|lastTransitionTime|message): default": "written, not defaulted",
    }
    found = differences(model_schema(BenchmarkRunStatus), crd, "status")
    assert unexplained(found, exceptions) == ([], [])


def test_suites_are_those_of_the_models(definitions: dict[str, Document]) -> None:
    crd = schema_of(definitions[SUITE_KIND])["properties"]
    found = [
        *differences(model_schema(SuiteSpec), crd["spec"], "spec"),
        *differences(model_schema(BenchmarkSuiteStatus), crd["status"], "status"),
    ]
    exceptions = {
        r"spec\.schedule\.(cron|timeZone): pattern None": "the model reads it with the libraries of the operator",
        r"spec\.hypotheses\[\]\.exponentAt(Least|Most): maxLength None": "the pattern bounds it",
        r"spec\.hypotheses\[\]\.(left|of)\.where: max(Length|Properties)": "pydantic has another name for it",
        r"status: default null": "a new suite has a status before anybody writes one",
        r"status\.observedGeneration: default -1": "the default of the whole status says it",
        r"status\..*: default": "written, not defaulted",
        r"status\..*: minimum None": "machines write it, the server bounds it",
        r"status\.conditions\[\]: required": "set_condition adds the time",
    }
    assert unexplained(found, exceptions) == ([], [])


def test_results_are_those_of_the_models(definitions: dict[str, Document]) -> None:
    crd = schema_of(definitions[RESULT_KIND])["properties"]
    found = [
        *differences(model_schema(ResultSpec, written=True), crd["spec"], "spec"),
        *differences(model_schema(ResultStatus, written=True), crd["status"], "status"),
    ]
    exceptions = {
        r".*: (minimum|maxLength|maxItems|maxProperties|pattern) None": "machines write it, the server bounds it",
        r".*: default (\[\]|false)": "written, not defaulted",
        r"status\.display: only in the definition": "for kubectl; files have none",
    }
    assert unexplained(found, exceptions) == ([], [])


def test_display_of_a_result_is_that_of_the_model(definitions: dict[str, Document]) -> None:
    crd = schema_of(definitions[RESULT_KIND])["properties"]["status"]["properties"]["display"]
    assert list(differences(model_schema(ResultDisplay), crd, "display")) == []


@KINDS
def test_every_field_is_described(definitions: dict[str, Document], kind: str) -> None:
    for path, field in walk(schema_of(definitions[kind])):
        # The description of a list or mapping may be enough for its entries.
        is_plain_entry = path.endswith(("[]", "{}")) and "properties" not in field
        if path != "metadata" and not is_plain_entry:
            assert field.get("description", "").endswith("."), path


@KINDS
def test_every_field_is_bounded(definitions: dict[str, Document], kind: str) -> None:
    for path, field in walk(schema_of(definitions[kind])):
        match field.get("type"):
            case "string":
                assert {"maxLength", "enum"} & field.keys(), path
            case "array":
                assert {"maxItems", "x-kubernetes-list-type"} <= field.keys(), path
            case "object" if path != "metadata" and "properties" not in field:
                assert "maxProperties" in field, path
            case "integer" if "anoseconds" not in path:
                assert "minimum" in field, path
            case None if not path.endswith(".where{}"):
                assert {"x-kubernetes-int-or-string", "pattern", "maxLength"} <= field.keys(), path


@KINDS
def test_objects_are_closed_but_for_some_of_the_results(definitions: dict[str, Document], kind: str) -> None:
    found = [
        path for path, field in walk(schema_of(definitions[kind])) if "x-kubernetes-preserve-unknown-fields" in field
    ]
    open_ones = {
        RUN_KIND: [],
        RESULT_KIND: [
            "spec.parameters",
            "status.environment",
            "status.fingerprint.identity",
            "status.fingerprint.context",
        ],
        SUITE_KIND: ["spec.hypotheses[].left.where{}", "spec.hypotheses[].of.where{}"],
    }
    assert found == open_ones[kind]


@pytest.mark.parametrize("kind", [RUN_KIND, SUITE_KIND])
def test_a_specification_holds_no_fractions(definitions: dict[str, Document], kind: str) -> None:
    for path, field in walk(schema_of(definitions[kind])["properties"]["spec"]):
        assert field.get("type") != "number", path


@KINDS
def test_names(definitions: dict[str, Document], kind: str) -> None:
    definition = definitions[kind]
    spec, names = definition["spec"], definition["spec"]["names"]
    assert (spec["group"], spec["versions"][0]["name"], spec["scope"]) == (GROUP, VERSION, "Namespaced")
    assert definition["metadata"]["name"] == f"{names['plural']}.{GROUP}"
    assert names["shortNames"] == {RUN_KIND: ["brun"], RESULT_KIND: ["bres"], SUITE_KIND: ["bsuite"]}[kind]
    assert names["categories"] == ["plimsoll"]
    assert spec["versions"][0]["subresources"] == {"status": {}}


@KINDS
def test_columns_name_fields_that_exist(definitions: dict[str, Document], kind: str) -> None:
    known = {path for path, _ in walk(schema_of(definitions[kind]))} | {"metadata.creationTimestamp"}
    columns = definitions[kind]["spec"]["versions"][0]["additionalPrinterColumns"]
    assert {column["jsonPath"].lstrip(".") for column in columns} <= known


def test_every_tool_is_in_the_union(definitions: dict[str, Document]) -> None:
    workload = schema_of(definitions[RUN_KIND])["properties"]["spec"]["properties"]["workloads"]["items"]
    union = workload["x-kubernetes-validations"][0]["rule"]
    assert set(re.findall(r"has\(self\.(\w+)\)", union)) == set(TOOLS)


REMEDY = r"must|cannot|has (no|a) |needs .*; change|(does not apply to|applies only to) .*; (remove|leave|use)"


@KINDS
def test_rules_say_what_to_do(definitions: dict[str, Document], kind: str) -> None:
    for path, field in walk(schema_of(definitions[kind])):
        for rule in field.get("x-kubernetes-validations", ()):
            assert re.search(REMEDY, rule["message"]), path
