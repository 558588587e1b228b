"""Which directory or devices `plimsoll run` measures for a run, and for each variant of a suite."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import pytest

from plimsoll.cli.local_storage import Target
from plimsoll.cli.run import targets_of

VARIANTS = ("old", "new")


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("a", "b", "c=d"):
        (tmp_path / name).mkdir()
    for name in ("sdx", "sdy"):
        (tmp_path / name).touch()
    return tmp_path


def chosen(places: Path, variants: Sequence[str], values: Sequence[str]) -> Mapping[str, Target]:
    """Return the targets of values such as `new={}/a`; those of devices contain `sd`."""
    paths = [value.format(places) for value in values]
    devices = [path for path, value in zip(paths, values, strict=True) if "sd" in value]
    return targets_of(variants, [path for path in paths if path not in devices], devices)


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        (["{}/a"], ["a"], ["a"]),
        (["new={}/b", "{}/a"], ["a"], ["b"]),
        (["old={}/sdx", "old={}/sdy", "new={}/b"], ["sdx", "sdy"], ["b"]),
        (["{}/c=d"], ["c=d"], ["c=d"]),
        (["old={}/c=d", "new={}/c=d"], ["c=d"], ["c=d"]),
    ],
    ids=["one for all", "one of its own", "several devices", "a path with =", "paths with = of variants"],
)
def test_a_variant_has_its_own_target_or_that_of_all(
    places: Path, values: list[str], old: list[str], new: list[str]
) -> None:
    def target(names: list[str]) -> Target:
        paths = tuple(places / name for name in names)
        return Target(directory=paths[0]) if paths[0].is_dir() else Target(devices=paths)

    found = chosen(places, VARIANTS, values)
    assert found == {"old": target(old), "new": target(new)}
    assert [found[name].mode for name in VARIANTS] == ["Block" if "sdx" in old else "Filesystem", "Filesystem"]


def test_a_run_has_one_target(places: Path) -> None:
    assert chosen(places, [""], ["{}/c=d"]) == {"": Target(directory=places / "c=d")}


@pytest.mark.parametrize(
    ("variants", "values", "message"),
    [
        (VARIANTS, ["old={}/a"], "nothing to measure for variant new; give one --directory, or one or several --dev"),
        (VARIANTS, ["ancient={}/a"], "ancient is not a variant of this suite; it has old, new"),
        (VARIANTS, ["old={}/absent"], "--directory .*absent: there is no such directory"),
        (VARIANTS, ["{}/sdz"], "--device .*sdz: there is no such device"),
        (VARIANTS, ["{}/a", "{}/b"], "too much to measure for variant old"),
        (VARIANTS, ["{}/a", "{}/sdx"], "too much to measure for variant old"),
        ([""], [], "nothing to measure; give one --directory"),
        ([""], ["{}/a", "{}/sdx"], "too much to measure; give one --directory"),
    ],
)
def test_a_target_that_cannot_be_used_is_named(
    places: Path, variants: Sequence[str], values: list[str], message: str
) -> None:
    with pytest.raises(click.UsageError, match=message):
        chosen(places, variants, values)
