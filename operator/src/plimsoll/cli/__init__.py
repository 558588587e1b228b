"""The command line: what users call, and the programs that pods and `run` start."""

import importlib

import click

from plimsoll import __version__

_COMMANDS = {
    "plan": "plimsoll.cli.plan",
    "run": "plimsoll.cli.run",
    "results": "plimsoll.cli.results",
    "layers": "plimsoll.cli.layers",
    "compare": "plimsoll.cli.compare",
    "noise": "plimsoll.cli.noise",
    "percentile": "plimsoll.cli.percentile",
    "operator": "plimsoll.cli.operator",
    "conductor": "plimsoll.cli.conductor",
    "agent": "plimsoll.cli.agent",
    "teardown": "plimsoll.cli.teardown",
}


class _LazyGroup(click.Group):
    """Imports a command when it is used: an agent must not pay for tables and progress bars."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = importlib.import_module(_COMMANDS[cmd_name]).command
        return command


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="plimsoll")
def main() -> None:
    """Find out how much load a storage system can safely carry."""
