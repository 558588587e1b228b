import subprocess
from hashlib import sha256
from pathlib import Path

from plimsoll.api.result import ToolUse
from plimsoll.measure.intake import MAX_ARGUMENT_CHARACTERS, MAX_ARGUMENTS
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import document, measure

A, B = "a" * 64, "b" * 64


def tool(numbers: TrialNumbers) -> ToolUse:
    assert numbers.tool is not None
    return numbers.tool


def test_version_command_and_digest_stand_in_the_numbers() -> None:
    numbers = measure(document(1, raw_sha256=B), document(0, raw_sha256=A, argv=("fio", "--rw=read")))
    digest = sha256(f"{A}  client-0\n{B}  client-1\n".encode()).hexdigest()
    assert tool(numbers) == ToolUse(versions=("fio 3.39",), argv=("fio", "--rw=read"), argv_client=0, raw_sha256=digest)


def test_sha256sum_prints_the_same(tmp_path: Path) -> None:
    listed = tmp_path / "clients"
    listed.write_text(f"{A}  client-0\n{B}  client-1\n")
    said = subprocess.run(["sha256sum", str(listed)], capture_output=True, text=True, check=True).stdout
    numbers = measure(document(0, raw_sha256=A), document(1, raw_sha256=B))
    assert tool(numbers).raw_sha256 == said.split()[0]


def test_there_is_no_digest_if_a_client_does_not_tell_its_own() -> None:
    assert tool(measure(document(0, raw_sha256=A), document(1, raw_sha256=""))).raw_sha256 is None
    assert tool(measure(document(0, raw_sha256="x" * 10**6))).raw_sha256 is None


def test_a_client_that_failed_has_its_part_in_the_evidence() -> None:
    failed = document(0, exit_code=1, raw_sha256=A).model_copy(update={"measurement": None})
    found = tool(measure(failed))
    assert found.versions == ()
    assert found.argv == ("fio",)
    assert found.raw_sha256 == sha256(f"{A}  client-0\n".encode()).hexdigest()


def test_nothing_is_known_of_a_trial_without_answers() -> None:
    assert measure(planned=2).tool is None


def test_evidence_is_bounded() -> None:
    found = tool(measure(document(0, argv=("x" * 10**5,) * 1000)))
    assert len(found.argv) == MAX_ARGUMENTS
    assert {len(word) for word in found.argv} == {MAX_ARGUMENT_CHARACTERS}
