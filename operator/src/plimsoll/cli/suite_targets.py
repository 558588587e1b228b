"""The option --target of `plimsoll suite run`: on which directory or devices each variant is measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from plimsoll.cli.machine import Target


def targets_of(variants: Sequence[str], values: Sequence[str]) -> Mapping[str, Target]:
    """Return the target of each variant.

    A value is `VARIANT=PATH`, or `PATH` for all variants without a target of their own.

    Raises:
        click.UsageError: a variant has no target, or a path cannot be one.

    """
    paths: dict[str, list[Path]] = {}
    for value in values:
        name, path = _split(variants, value)
        paths.setdefault(name, []).append(path)
    return {variant: _target(variant, paths.get(variant) or paths.get("", [])) for variant in variants}


def _split(variants: Sequence[str], value: str) -> tuple[str, Path]:
    """Return the variant, empty for all, and the path."""
    name, equals, path = value.partition("=")
    if equals and name in variants:
        return name, Path(path)
    if equals and not Path(value).exists():
        message = f"--target {value}: {name} is no variant of this suite; its variants are {', '.join(variants)}"
        raise click.UsageError(message)
    return "", Path(value)


def _target(variant: str, paths: Sequence[Path]) -> Target:
    if not paths:
        message = f"variant {variant} has no target; give --target {variant}=DIR|DEVICE, or --target DIR|DEVICE for all"
        raise click.UsageError(message)
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None:
        message = f"--target of {variant}: {absent} does not exist"
        raise click.UsageError(message)
    directories = [path for path in paths if path.is_dir()]
    if directories and len(paths) > 1:
        message = f"variant {variant} has several targets; give one directory, or only devices"
        raise click.UsageError(message)
    return Target(directory=directories[0]) if directories else Target(devices=tuple(paths))
