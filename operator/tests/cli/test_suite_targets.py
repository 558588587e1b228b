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


def test_one_target_is_that_of_all_variants(places: Path) -> None:
    target = Target(directory=places / "a")
    assert targets_of(VARIANTS, [str(places / "a")]) == {"old": target, "new": target}


def test_a_variant_may_have_its_own_target(places: Path) -> None:
    found = targets_of(VARIANTS, [f"new={places}/b", str(places / "a")])
    assert found == {"old": Target(directory=places / "a"), "new": Target(directory=places / "b")}


def test_several_devices_are_one_target(places: Path) -> None:
    found = targets_of(VARIANTS, [f"old={places}/sdx", f"old={places}/sdy", f"new={places}/b"])
    assert found["old"] == Target(devices=(places / "sdx", places / "sdy"))
    assert found["old"].mode == "Block"


def test_a_path_may_contain_an_equals_sign(places: Path) -> None:
    path = places / "c=d"
    assert targets_of(VARIANTS, [str(path)])["old"] == Target(directory=path)
    assert targets_of(VARIANTS, [f"old={path}", f"new={path}"])["new"] == Target(directory=path)


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
