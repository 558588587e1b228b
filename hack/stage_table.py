"""The table of stages, times and budgets with which a run ends."""

# ruff: noqa: INP001 - imported by a script that is run by path
import re
from collections.abc import Iterable, Mapping, Sequence

SLOWEST = 5
SKIPPED = re.compile(r"^SKIPPED \[(\d+)\] (.+)$")
DURATION = re.compile(r"^([0-9.]+)s (?:call|setup|teardown) +(\S+)")


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def slowest(lines: Iterable[str], count: int = SLOWEST) -> list[str]:
    """Return the slowest tests of pytest's --durations with their seconds, slowest first."""
    found = [(float(match[1]), match[2]) for line in lines if (match := DURATION.match(line))]
    return [f"{seconds:.0f} s  {name}" for seconds, name in sorted(found, reverse=True)[:count]]


def skipped(lines: Iterable[str]) -> list[str]:
    """Return the tests that pytest skipped, as its -r names them: where, why and how many."""
    return [f"{match[2]} (tests: {match[1]})" for line in lines if (match := SKIPPED.match(line))]


def table(rows: Sequence[tuple[str, float, float]], details: Mapping[str, Sequence[str]]) -> str:
    """Return the closing table of stage, time and budget, with details below stages over their budget."""
    width = max(map(len, ["stage", *(name for name, _, _ in rows)]))
    lines = [f"{'stage':<{width}}  {'time':>6}  {'budget':>6}"]
    for name, seconds, budget in rows:
        over = seconds > budget
        lines.append(f"{name:<{width}}  {clock(seconds):>6}  {clock(budget):>6}{'  over budget' if over else ''}")
        lines += [f"{'':<{width}}    {detail}" for detail in details.get(name, ()) if over]
    return "\n".join(lines)
