import pytest
from pydantic import ValidationError

from plimsoll.api.names import Layer
from plimsoll.api.run import Workload
from plimsoll.measure.rates import Quantities
from plimsoll.tools.base import StepKind, ToolParameters
from plimsoll.tools.fio.parameters import FioParameters, Pattern
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.rados_bench import RadosBench, RadosBenchParameters
from plimsoll.tools.registry import DEPTH_AXES, LAYERS, SIZE_AXES, TOOLS
from plimsoll.tools.target import TargetKind

from .conftest import FILE, step_context

FIO = Fio()
RADOS_BENCH = RadosBench()


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


def test_declarations_of_fio() -> None:
    assert (FIO.target, FIO.runs_alone, FIO.windowed) == (TargetKind.VOLUME, False, True)
    assert FIO.quantities == Quantities(operations=True, cells=False)
    assert FIO.steps(FioParameters()) == (StepKind.MEASURE,)


@pytest.mark.parametrize("key", TOOLS)
def test_a_tool_refuses_the_parameters_of_another_one(key: str) -> None:
    with pytest.raises(ValidationError, match="unheardOf"):
        TOOLS[key].parameters.model_validate({"unheardOf": 1})


def test_a_tool_refuses_the_target_of_another_one() -> None:
    with pytest.raises(TypeError, match="VolumeTarget"):
        RADOS_BENCH.command(RadosBenchParameters(), step_context(FILE, 5, 15))


def test_layers_are_those_of_the_tools_from_the_bottom_up() -> None:
    assert list(LAYERS.values()) == sorted(LAYERS.values(), key=list(Layer).index)


@pytest.mark.parametrize("key", TOOLS)
def test_only_a_tool_whose_work_is_timed_has_a_minimum_without_a_window(key: str) -> None:
    tool = TOOLS[key]
    assert tool.least_runtime_seconds == (3 if tool.windowed else {"dd": 1, "osdBench": 1}.get(key, 0))


@pytest.mark.parametrize("key", TOOLS)
def test_depth_and_size_are_axes(key: str) -> None:
    parameters = TOOLS[key].parameters
    assert {parameters.depth_axis, parameters.size_axis} - {""} <= parameters.axes


def test_axes_of_depth_and_size_are_those_of_all_tools_with_fio_first() -> None:
    assert (DEPTH_AXES[0], SIZE_AXES[0]) == ("ioDepth", "blockSize")
    parameters = [tool.parameters for tool in TOOLS.values()]
    assert sorted(DEPTH_AXES) == sorted({model.depth_axis for model in parameters} - {""})
    assert sorted(SIZE_AXES) == sorted({model.size_axis for model in parameters} - {""})


def test_only_trims_remove_data() -> None:
    removing = [pattern for pattern in Pattern if FioParameters(pattern=pattern).removes_data]
    assert removing == [Pattern.TRIM, Pattern.RANDTRIM]
    assert not ToolParameters().removes_data
