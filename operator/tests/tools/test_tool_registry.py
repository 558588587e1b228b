import pytest

from plimsoll.api.names import LatencyKind
from plimsoll.api.run import Workload
from plimsoll.measure.checking.terms_checks import RUNTIME_TOO_SHORT
from plimsoll.tools.base import Roles, StepKind, TargetKind, ToolParameters
from plimsoll.tools.fio import FIO, FioParameters
from plimsoll.tools.fio.parameters import Pattern
from plimsoll.tools.registry import TOOLS


@pytest.mark.parametrize("key", TOOLS)
def test_tool_is_found_by_its_key(key: str) -> None:
    tool = TOOLS[key]
    assert tool.key == key
    assert key not in Workload.model_fields


@pytest.mark.parametrize("key", TOOLS)
def test_axes_are_fields_with_a_default(key: str) -> None:
    parameters = TOOLS[key].parameters
    fields = {field.alias for field in parameters.model_fields.values()}
    assert parameters.axes <= fields


def test_all_tools_are_there() -> None:
    assert set(TOOLS) == {"fio", "radosBench", "rbdBench", "osdBench"}
    assert {tool.program for tool in TOOLS.values()} == {"fio", "rados", "rbd", "ceph"}


def test_fio_says_how_it_runs() -> None:
    assert (FIO.target, FIO.roles, FIO.windowed, FIO.latency) == (
        TargetKind.VOLUME,
        Roles.EACH,
        True,
        LatencyKind.FULL,
    )
    assert FIO.steps(FioParameters()) == (StepKind.MEASURE,)


def test_fio_refuses_the_parameters_of_another_tool() -> None:
    with pytest.raises(TypeError, match="ToolParameters"):
        FIO.steps(ToolParameters())


def test_tools_that_run_for_a_time_have_a_least_runtime_and_the_check_names_it() -> None:
    """`RuntimeTooShort` is generated into the documentation."""
    assert {key: tool.least_runtime_seconds for key, tool in TOOLS.items() if tool.windowed} == {
        "fio": 3,
        "radosBench": 3,
        "rbdBench": 3,
    }
    assert {tool.least_runtime_seconds for tool in TOOLS.values() if not tool.windowed} == {0}
    assert "3 s for fio, rados bench and rbd bench" in RUNTIME_TOO_SHORT.what


def test_trims_remove_data_and_nothing_else_does() -> None:
    removing = [pattern for pattern in Pattern if FioParameters(pattern=pattern).removes_data]
    assert removing == [Pattern.TRIM, Pattern.RANDTRIM]
    assert not ToolParameters().removes_data
