"""What the generators share: `make generate` writes their files, `make verify` compares them with --check."""

# ruff: noqa: INP001 - imported by scripts, run by path
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent.parent


def update(files: Iterable[tuple[Path, str]], directory: Iterable[Path] = ()) -> int:
    """Write the files, or with --check name those that are out of date; return the exit code.

    `directory` has the files of a directory in which all files are generated: others are removed.
    """
    checks, paths, stale = "--check" in sys.argv, set(), list[Path]()
    for path, text in files:
        paths.add(path)
        if not path.is_file() or path.read_text() != text:
            stale.append(path)
            if not checks:
                path.write_text(text)
    for path in [path for path in directory if path not in paths]:
        stale.append(path)
        if not checks:
            path.unlink()
    if not checks:
        return 0
    for path in stale:
        sys.stderr.write(f"{path.relative_to(ROOT)}: is out of date; run `make generate`\n")
    return int(bool(stale))


def with_part(text: str, begin: str, end: str, part: str) -> str:
    """Return a text with another part between two lines."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{part}{end}{after}"
