import pytest
from pydantic import ValidationError

from plimsoll.api.names import Layer
from plimsoll.api.run import Workload
from plimsoll.measure.checks.load import runtime_too_short
from plimsoll.measure.rates import Quantities
from plimsoll.tools.base import StepKind, ToolParameters
from plimsoll.tools.cast import AGENTS
from plimsoll.tools.fio.parameters import FioParameters, Pattern
from plimsoll.tools.fio.tool import FIO
from plimsoll.tools.rados_bench import RadosBenchParameters
from plimsoll.tools.registry import DEPTH_AXES, LAYERS, SIZE_AXES, TOOLS
from plimsoll.tools.target import TargetKind


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


def test_all_tools_are_registered() -> None:
    assert set(TOOLS) == {
        "fio",
        "radosBench",
        "rbdBench",
        "osdBench",
        "dd",
        "ioping",
        "bonnie",
        "iperf3",
        "netcat",
        "ping",
        "kubeBurner",
    }
    assert {tool.program for tool in TOOLS.values()} == {
        *("fio", "rados", "rbd", "ceph", "dd", "ioping", "bonnie++"),
        *("iperf3", "nc.traditional", "ping", "plimsoll"),
    }


def test_declarations_of_fio() -> None:
    assert (FIO.target, FIO.executor, FIO.windowed) == (TargetKind.VOLUME, AGENTS, True)
    assert FIO.quantities == Quantities(operations=True, bytes=True, cells=False)
    assert FIO.steps(FioParameters()) == (StepKind.MEASURE,)


def test_fio_refuses_the_parameters_of_another_tool() -> None:
    with pytest.raises(ValidationError, match="operation"):
        FIO.parameters.model_validate(RadosBenchParameters().model_dump(mode="json"))


def test_layers_are_those_of_the_tools_from_the_bottom_up() -> None:
    assert [*LAYERS.items()] == [
        ("ping", Layer.NETWORK),
        ("netcat", Layer.NETWORK),
        ("iperf3", Layer.NETWORK),
        ("osdBench", Layer.OSD),
        ("radosBench", Layer.RADOS),
        ("ioping", Layer.RBD),
        ("dd", Layer.RBD),
        ("rbdBench", Layer.RBD),
        ("fio", Layer.RBD),
        ("bonnie", Layer.FILE_SYSTEM),
        ("kubeBurner", Layer.CONTROL_PLANE),
    ]


def test_windowed_tools_have_a_least_runtime_that_the_check_names() -> None:
    """`RuntimeTooShort` is generated into the documentation."""
    assert {key: tool.least_runtime_seconds for key, tool in TOOLS.items() if tool.windowed} == {
        "fio": 3,
        "radosBench": 3,
        "rbdBench": 3,
        "ioping": 3,
        "iperf3": 3,
        "netcat": 3,
        "ping": 3,
    }
    assert "3 s for fio, ioping, rados bench, rbd bench, iperf3, netcat and ping" in runtime_too_short.what


def test_least_time_of_work_is_ten_times_that_of_tools_without_a_window() -> None:
    assert {key: tool.least_runtime_seconds for key, tool in TOOLS.items() if not tool.windowed} == {
        "osdBench": 0,
        "dd": 1,
        "bonnie": 0,
        "kubeBurner": 0,
    }
    assert "10 s for dd" in runtime_too_short.what


@pytest.mark.parametrize("key", TOOLS)
def test_depth_and_size_are_axes(key: str) -> None:
    parameters = TOOLS[key].parameters
    assert {parameters.depth_axis, parameters.size_axis} - {""} <= parameters.axes


def test_axes_of_depth_and_size_are_those_of_all_tools() -> None:
    assert (DEPTH_AXES, SIZE_AXES) == (("ioDepth", "concurrency"), ("blockSize", "objectSize", "size", "chunkSize"))


def test_only_trims_remove_data() -> None:
    removing = [pattern for pattern in Pattern if FioParameters(pattern=pattern).removes_data]
    assert removing == [Pattern.TRIM, Pattern.RANDTRIM]
    assert not ToolParameters().removes_data
