"""Commands of `e2e/ceph`, `e2e/rook` and `e2e/csi` that run at the same time (e2e/ceph/lib/common.sh)."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
COMMON = ROOT / "e2e" / "ceph" / "lib" / "common.sh"

# Each command appends its begin and its end; it ends when the other one has begun too, or is seen to wait.
_PAIR = """
set -Eeuo pipefail
. "$COMMON"
step() {
    echo "$NAMESPACE begins" >> "$LOG"
    for _ in $(seq 1 "$TENTHS"); do
        [[ $(grep -c begins "$LOG") -lt 2 ]] || break
        sleep 0.1
    done
    echo "$NAMESPACE ends" >> "$LOG"
}
in_namespace() { NAMESPACE=$1; lock; $WRAPPER step; }
in_namespace a & in_namespace b & wait -n; wait
"""


def pair(tmp_path: Path, wrapper: str, tenths: int) -> list[str]:
    """Return the lines of two commands in different namespaces that started together."""
    log = tmp_path / "log"
    log.touch()
    known = {"COMMON": str(COMMON), "LOG": str(log), "WRAPPER": wrapper, "TENTHS": str(tenths)}
    environment = {**os.environ, **known, "TMPDIR": str(tmp_path)}
    subprocess.run(["bash", "-c", _PAIR], env=environment, check=True, timeout=60)
    return log.read_text().splitlines()


def test_commands_of_different_namespaces_do_not_wait_for_each_other(tmp_path: Path) -> None:
    lines = pair(tmp_path, "", tenths=300)
    assert sorted(lines[:2]) == ["a begins", "b begins"]


def test_commands_change_what_all_namespaces_share_one_after_the_other(tmp_path: Path) -> None:
    lines = pair(tmp_path, "exclusively", tenths=5)
    assert [line.split()[1] for line in lines] == ["begins", "ends", "begins", "ends"]
    assert lines[0].split()[0] == lines[1].split()[0]


def test_a_failure_under_the_lock_fails_the_command(tmp_path: Path) -> None:
    script = 'set -Eeuo pipefail; . "$COMMON"; change() { false; echo later; }; exclusively change; echo after'
    environment = {**os.environ, "COMMON": str(COMMON), "TMPDIR": str(tmp_path)}
    ended = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert ended.stdout == ""


def test_the_shared_definitions_change_only_under_the_lock() -> None:
    lines = (ROOT / "e2e" / "rook" / "rook").read_text().splitlines()
    calls = [line.strip() for line in lines if "definitions_" in line and not line.startswith("definitions_")]
    assert calls == ["exclusively definitions_ensure", "exclusively definitions_delete"]
    uses = [number for number, line in enumerate(lines) if "crds.yaml" in line]
    starts = [number for number, line in enumerate(lines) if line.startswith("definitions_")]
    assert all(any(start < use < start + 6 for start in starts) for use in uses)
