"""The commands of a tool's steps, and their outputs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""In front of a command: the kernel kills it when its parent dies, for whatever reason, but not its own children."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, and others that run at the same time.

    Attributes:
        argv: `argv[0]` is the tool's name, which the agent resolves, or `timeout` in front of it. Empty for a `prepare`
            step that only writes `inputs`.
        stdin: path of its standard input.
        metered_seconds: if set, the agent ends the command after this time, which is its success. Its standard output
            is discarded; instead, the agent prints a line every second and at the end: Unix nanoseconds, and the bytes
            that the command has read so far (`rchar` of `proc_pid_io(5)`).
        inputs: name -> lines, with their ends, of files that the agent writes in the work directory before the start.
            They can be millions, and are yielded as they are written.
        accepts_only: the address of the only peer that it serves; empty for no such limit. The
            agent preloads a library for it, which prints `accepting only ADDRESS` when the command listens.
        beside: commands that start with it. If one of them fails, all are ended.

    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = "/dev/null"
    inputs: Mapping[str, Iterable[str]] = field(default_factory=dict)
    metered_seconds: int = 0
    accepts_only: str = ""
    beside: "tuple[Command, ...]" = ()

    @property
    def all(self) -> "tuple[Command, ...]":
        """The command and those beside it."""
        return (self, *self.beside)


def together(commands: Iterable[Command]) -> Command:
    """Return the first command, with the others beside it."""
    first, *others = commands
    return replace(first, beside=tuple(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of a command.

    Attributes:
        exit_code: negative for the signal that ended it.
        stdout: bounded by the agent, like `stderr`.
        files: name -> text of every other file in the work directory.
        launched_at: start of the command, in Unix nanoseconds; 0 if unknown.
        finished_at: its end, likewise.
        beside: the outputs of the commands beside it, in their order; without them if a command failed: then this is
            the output of the one that failed.

    """

    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, str]
    launched_at: int = 0
    finished_at: int = 0
    beside: "tuple[Output, ...]" = ()

    @property
    def all(self) -> "tuple[Output, ...]":
        """The output and those of the commands beside it."""
        return (self, *self.beside)


class OutputError(ValueError):
    """A tool's output cannot be read; the message names the field or line."""
