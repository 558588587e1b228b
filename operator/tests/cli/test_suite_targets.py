"""Which directory or devices `plimsoll suite run` measures for each variant."""

from pathlib import Path

import click
import pytest

from plimsoll.cli.local_storage import Target
from plimsoll.cli.suite_run import targets_of

VARIANTS = ("old", "new")


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("a", "b", "c=d"):
        (tmp_path / name).mkdir()
    for name in ("sdx", "sdy"):
        (tmp_path / name).touch()
    return tmp_path


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

    found = targets_of(VARIANTS, [value.format(places) for value in values])
    assert found == {"old": target(old), "new": target(new)}
    assert [found[name].mode for name in VARIANTS] == ["Block" if "sdx" in old else "Filesystem", "Filesystem"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["old={}/a"], "variant new has no target; give --target new=DIR|DEVICE, or --target DIR|DEVICE for all"),
        (["ancient={}/a"], "ancient is no variant of this suite; its variants are old, new"),
        (["{}/absent"], "--target of old: .*absent does not exist"),
        (["{}/a", "{}/b"], "variant old has several targets; give one directory, or only devices"),
        (["{}/a", "{}/sdx"], "variant old has several targets"),
    ],
)
def test_a_target_that_cannot_be_used_is_named(places: Path, values: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        targets_of(VARIANTS, [value.format(places) for value in values])
