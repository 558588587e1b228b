"""A group that imports a command when it is used, so that an agent does not load tables and progress bars."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose commands are in modules of their own, each named `command`."""

    def __init__(self, *arguments: Any, modules: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's
        """Create a group from the modules of its commands, by their names."""
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        """Return the names of the commands, in the order of their declaration."""
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a command; None if there is none of that name."""
        if cmd_name not in self._modules:
            return None
        command: click.Command = importlib.import_module(self._modules[cmd_name]).command
        return command
