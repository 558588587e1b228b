import pytest

from plimsoll.api.names import LatencyKind
from plimsoll.api.run import Workload
from plimsoll.tools.base import Roles, StepKind, TargetKind, ToolParameters
from plimsoll.tools.fio import FIO, FioParameters
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
