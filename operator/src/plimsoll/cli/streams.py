"""What commands print: no text of a cluster or a file can control the terminal.

Everything that is written to the standard streams, errors and tracebacks included, is made printable here. Only a
`tables.Terminal` writes to the terminal itself, for its styles; it makes the texts in them printable.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from types import TracebackType
from typing import TextIO, cast

from plimsoll.api.json_reader import printable_text


class _PrintableStream(io.TextIOBase):
    """A text stream that replaces unprintable characters."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        """Where a console of rich writes: the name is rich's."""

    @property
    def encoding(self) -> str:  # type: ignore[override] # the base class has an attribute
        return self.rich_proxied_file.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override] # the base class has an attribute
        return self.rich_proxied_file.errors

    def write(self, text: str, /) -> int:
        return self.rich_proxied_file.write(printable_text(text))

    def flush(self) -> None:
        self.rich_proxied_file.flush()

    def fileno(self) -> int:
        return self.rich_proxied_file.fileno()

    def isatty(self) -> bool:
        return self.rich_proxied_file.isatty()

    def writable(self) -> bool:
        return True


@contextmanager
def printable_streams() -> Iterator[None]:
    """Make printable what the block prints, and what Python prints about the exception that ends the program."""
    sys.excepthook = _print_exception
    out, err = (cast("TextIO", _PrintableStream(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def _print_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    with redirect_stderr(cast("TextIO", _PrintableStream(sys.stderr))):
        sys.__excepthook__(kind, error, trace)
