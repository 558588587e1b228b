import json
from collections.abc import Callable

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.storage import Precondition
from plimsoll.tools.base import Output
from plimsoll.tools.fio.preparation import changed_bytes, precondition_command
from plimsoll.tools.target import VolumeKind, VolumeTarget

from .conftest import Golden

MEBIBYTE = 2**20
Goldens = Callable[..., Golden]


def volume(size: int = 64 * MEBIBYTE, kind: VolumeKind = VolumeKind.DEVICE) -> VolumeTarget:
    return VolumeTarget(kind=kind, path="/dev/volume", size=size, offset=MEBIBYTE)


def changed(golden: Golden, **fields: int) -> Output:
    document = json.loads(golden.document)
    document["jobs"][0]["write"].update(fields)
    return golden.with_document(json.dumps(document)).output


def test_random_blocks_of_the_whole_target_are_overwritten_for_a_time() -> None:
    argv = precondition_command(volume(), Precondition(block_size=65536, seconds=600), 7, "/work").argv
    expected = {
        "--rw=randwrite", "--bs=65536", f"--offset={MEBIBYTE}", f"--size={64 * MEBIBYTE}", "--direct=1", "--iodepth=16",
        "--time_based=1", "--runtime=600s", "--refill_buffers=1", "--norandommap=1", "--randseed=8",
        "--output=/work/fio.json", "--name=precondition", "--filename=/dev/volume", "--ioengine=libaio",
    }  # fmt: skip
    assert expected <= set(argv)
    assert not any(argument.startswith(("--numjobs", "--ramp_time", "--rate")) for argument in argv)


@pytest.mark.parametrize("kind", list(VolumeKind))
def test_nothing_is_created(kind: VolumeKind) -> None:
    assert "--allow_file_create=0" in precondition_command(volume(kind=kind), Precondition(), 1, "/work").argv


def test_only_whole_blocks_are_written() -> None:
    argv = precondition_command(volume(), Precondition(block_size=3 * 512), 1, "/work").argv
    assert f"--size={64 * MEBIBYTE // 1536 * 1536}" in argv


def test_target_must_hold_a_block() -> None:
    with pytest.raises(ValueError, match=r"has 1Mi, less than the 2Mi of precondition\.blockSize: use a larger volume"):
        precondition_command(volume(size=MEBIBYTE), Precondition(block_size=2 * MEBIBYTE), 1, "/work")


def test_written_bytes_are_returned(golden: Goldens) -> None:
    assert changed_bytes("precondition", golden("precondition", job="precondition").output, volume()) == 960 * 65536


def test_nothing_written_is_an_error(golden: Goldens) -> None:
    output = changed(golden("precondition", job="precondition"), io_bytes=0)
    with pytest.raises(OutputError, match="wrote nothing to /dev/volume: use more seconds"):
        changed_bytes("precondition", output, volume())


def test_short_writes_are_an_error(golden: Goldens) -> None:
    output = changed(golden("precondition", job="precondition"), short_ios=2)
    with pytest.raises(OutputError, match=r"precondition wrote .* with 2 operations that were short or dropped"):
        changed_bytes("precondition", output, volume())


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("no-space", r"precondition failed with exit code 1: job 1 of 1 failed: ENOSPC \(error 28\)"),
        ("missing-file", r"precondition failed with exit code 1: fio: file creation disallowed"),
        ("sigterm", r"precondition failed with exit code 128: fio: terminating on signal 15"),
    ],
)
def test_failure_is_an_error_in_fios_words(golden: Goldens, case: str, words: str) -> None:
    with pytest.raises(OutputError, match=words):
        changed_bytes("precondition", golden(case, job="precondition").output, volume())
