"""The command line: the commands of users, and the programs that pods and `plimsoll run` start."""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO, cast

import click

from plimsoll.api.json_reader import printable_text

_COMMANDS = ("plan", "run", "watch", "results", "report", "layers", "compare", "init", "doctor")
_PROGRAMS = ("operator", "conductor", "agent", "teardown", "burn")
_HELPERS = {"caches": "caches_command", "burner": "burner_command"}
_HOOKS = {"remove-runs": "remove_command", "check-installation": "check_command"}

EXIT_STOPPED = 128 + signal.SIGTERM  # exit code of a program that SIGTERM has ended, except the conductor
_CONDUCTOR_STOPPED = 3  # `EXIT_INTERRUPTED` of `plimsoll.conductor.main`, which takes a while to import


class Exit(IntEnum):
    """The exit codes of the commands of users, which docs/reference/cli.md explains."""

    DONE = 0
    ERROR = 1  # click's for an error
    USAGE = 2  # click's for a usage error
    REGRESSION = 3
    NOT_ENOUGH_EVIDENCE = 4
    NOT_VALID = 5
    TIMEOUT = 6
    INTERRUPTED = 128 + signal.SIGINT


@contextmanager
def exit_on(
    *kinds: type[Exception], what: str, remedy: str = "", kind: type[click.ClickException] = click.ClickException
) -> Iterator[None]:
    """Exit if the block raises one of these errors: with `what` failed, the reason, and the remedy."""
    try:
        yield
    except kinds as error:
        reason = isinstance(error, OSError) and error.strerror
        raise kind(f"{what}{reason or error}{remedy}") from error


PLUGIN = "kubectl plimsoll"  # name of the program when kubectl starts it as `kubectl-plimsoll`


class _PrintableStream:
    """A text stream that replaces unprintable characters."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """Where a console of rich writes: the name is rich's."""

    def write(self, text: str, /) -> int:
        return self.rich_proxied_file.write(printable_text(text))

    def writelines(self, lines: Iterable[str], /) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute of the stream
        # Through its buffer anything could be written.
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make the block's output printable, and Python's about the exception that ends the program.

    No text of a cluster or a file can control the terminal. Only a `tables.Terminal` writes to it directly, for its
    styles; it makes the texts in them printable.
    """

    def print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        with redirect_stderr(cast("TextIO", _PrintableStream(sys.stderr))):
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = print_exception
    out, err = (cast("TextIO", _PrintableStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


class LazyGroup(click.Group):
    """A group that imports a command when it is used, so that an agent does not load tables and progress bars.

    A command is `module:name`, or the `command` of a module.
    """

    def __init__(self, *arguments: Any, modules: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*arguments, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature is click's
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._modules:
            return None
        module, _, name = self._modules[cmd_name].partition(":")
        # What an import creates remains: to look for garbage in it takes a twentieth of the time.
        gc.disable()
        try:
            command: click.Command = getattr(importlib.import_module(module), name or "command")
        finally:
            gc.enable()
        return command


class _Program(LazyGroup):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command. From now on SIGTERM ends a program of a pod, until it handles the signal itself."""
        if args[0] in {*_PROGRAMS, *_HELPERS}:
            code = _CONDUCTOR_STOPPED if args[0] == "conductor" else EXIT_STOPPED
            # Nothing has to be cleaned up yet. Without a handler, Linux does not deliver the signal to the first
            # process of a container, and any other process ends as if it had crashed.
            signal.signal(signal.SIGTERM, lambda *_: os._exit(code))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the signature is click's
        """Run the command; Ctrl-C, or a question that is not answered with yes, ends it as interrupted."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            ctx.exit(Exit.INTERRUPTED)

    def main(self, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the signature is click's
        """Run with the program name that the user typed, and print only printable characters."""
        if options.get("prog_name") is None and Path(sys.argv[0]).name == PLUGIN.replace(" ", "-"):
            options["prog_name"] = PLUGIN
        with printable_streams():
            return super().main(*arguments, **options)


_MODULES = {
    **{name: f"plimsoll.cli.{name}" for name in _COMMANDS},
    **{name: f"plimsoll.programs.{name}" for name in _PROGRAMS},
    "operator": "plimsoll.operator.main",
    **{name: f"plimsoll.programs.helpers:{command}" for name, command in _HELPERS.items()},
    **{name: f"plimsoll.programs.hooks:{command}" for name, command in _HOOKS.items()},
}


@click.group(cls=_Program, modules=_MODULES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="plimsoll")
def main() -> None:
    """Find out how much load a storage system can safely carry."""
