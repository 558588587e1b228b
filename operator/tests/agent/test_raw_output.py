"""The raw output of a trial, and that a user can verify that the result was computed from it."""

import re
import subprocess
from pathlib import Path

from plimsoll.agent.worker import Archive, raw_digest
from plimsoll.api.status import TrialKey
from plimsoll.measure.sample import ClientDocument
from support.client_documents import document, measure

TRUST = Path(__file__).parents[3] / "docs" / "how-to" / "trust.md"
TRIAL = TrialKey(point="random-read-000", pass_number=0, attempt=0)


def audited(raw: Path) -> str:
    """Return the output of the documented commands."""
    found = re.search(r"```\n(cd raw/random-read-000/.*?)```", TRUST.read_text(), re.DOTALL)
    assert found is not None
    output = subprocess.run(["sh", "-ec", found[1]], cwd=raw.parent, capture_output=True, text=True, check=True)
    return output.stdout.split()[0]


def keep(archive: Archive, client: int, output: Path) -> ClientDocument:
    output.mkdir()
    (output / "stdout").write_bytes(b"client %d\r\xff" % client)
    (output / "fio_bw.1.log").write_text("1000, 1, 0, 4096\n")
    (output / "Z").write_text("")
    answer = document(client, raw_sha256=raw_digest(output))
    archive.keep(TRIAL, answer, output)
    return answer


def test_documented_commands_give_the_digest_of_the_result(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    answers = [keep(Archive(directory=raw), client, tmp_path / f"output-{client}") for client in range(12)]
    tool = measure(*answers).tool
    assert tool is not None
    assert audited(raw) == tool.raw_sha256
    (raw / TRIAL.point / "pass-0-attempt-0" / "client-10" / "fio_bw.1.log").write_text("1000, 2, 0, 4096\n")
    assert audited(raw) != tool.raw_sha256


def test_numbers_can_be_computed_again_from_the_archive(tmp_path: Path) -> None:
    archive = Archive(directory=tmp_path / "raw")
    answers = [keep(archive, client, tmp_path / f"output-{client}") for client in range(2)]
    files = sorted((tmp_path / "raw" / TRIAL.point / "pass-0-attempt-0").glob("client-*.json"))
    assert measure(*(ClientDocument.model_validate_json(file.read_text()) for file in files)) == measure(*answers)


def test_every_file_changes_the_digest(tmp_path: Path) -> None:
    digests = [raw_digest(tmp_path)]
    for name, text in (("a", ""), ("b", ""), ("b", "x")):
        (tmp_path / name).write_text(text)
        digests.append(raw_digest(tmp_path))
    (tmp_path / "directory").mkdir()
    assert len(set(digests)) == 4
    assert raw_digest(tmp_path) == digests[-1]
