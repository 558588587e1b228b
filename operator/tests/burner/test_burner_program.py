"""`plimsoll burn` and `plimsoll burner` as processes, with a pretended kube-burner."""

import pytest
from click.testing import CliRunner

from plimsoll.cli import main


def test_burn_refuses_parameters_of_another_tool() -> None:
    arguments = ["--helper=https://127.0.0.1:1", "--certificate=c", "--token=/t", "--storage-class=fast", "--run-uid=u"]
    result = CliRunner().invoke(main, ["burn", '{"image":"evil"}', *arguments])
    assert result.exit_code != 0
    assert "image" in str(result.exception)


@pytest.mark.parametrize(
    "missing", ["--namespace", "--allow", "--max-objects", "--max-qps", "--max-volume-size", "--pod-image"]
)
def test_helper_needs_its_limits(missing: str) -> None:
    options = {
        "--namespace": "a",
        "--allow": "b",
        "--max-objects": "1",
        "--max-qps": "1",
        "--max-volume-size": "1Gi",
        "--pod-image": "r:1",
    }
    result = CliRunner().invoke(
        main, ["burner", *(f"{name}={value}" for name, value in options.items() if name != missing)]
    )
    assert result.exit_code == 2
    assert missing in result.output
