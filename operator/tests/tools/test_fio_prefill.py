import json
from collections.abc import Callable
from functools import partial

import pytest

from plimsoll.api.json_reader import OutputError
from plimsoll.api.storage import DataContent, Precondition
from plimsoll.tools.base import Command, Output
from plimsoll.tools.fio.preparation import changed_bytes, precondition_command, prefill_command
from plimsoll.tools.target import VolumeKind, VolumeTarget

from .conftest import Golden

MEBIBYTE = 2**20
Goldens = Callable[..., Golden]


def volume(size: int = 64 * MEBIBYTE, kind: VolumeKind = VolumeKind.DEVICE) -> VolumeTarget:
    return VolumeTarget(kind=kind, path="/dev/volume", size=size, offset=MEBIBYTE)


def with_exit_code(output: Output, exit_code: int) -> Output:
    return Output(exit_code=exit_code, stdout="", stderr="fio: out of paper\n", files=output.files)


def test_every_byte_is_written_once_in_order() -> None:
    argv = prefill_command(volume(), 7, "/work").argv
    expected = {
        "--rw=write", "--bs=1048576", f"--offset={MEBIBYTE}", f"--size={64 * MEBIBYTE}", "--direct=1", "--iodepth=8",
        "--refill_buffers=1", "--end_fsync=1", "--fallocate=none", "--randseed=8", "--output=/work/fio.json",
    }  # fmt: skip
    assert expected <= set(argv)
    assert not any(argument.startswith(("--time_based", "--numjobs", "--ramp_time", "--loops")) for argument in argv)


@pytest.mark.parametrize("command", [prefill_command, partial(precondition_command, precondition=Precondition())])
def test_what_is_written_before_is_as_compressible_as_what_is_measured(command: Callable[..., Command]) -> None:
    content = DataContent(compress_percent=50, dedupe_percent=20)
    argv = command(volume(), seed=7, work_directory="/work", content=content).argv
    assert {"--refill_buffers=1", "--buffer_compress_percentage=50", "--dedupe_percentage=20"} <= set(argv)


@pytest.mark.parametrize(("kind", "allowed"), [(VolumeKind.FILE, 1), (VolumeKind.DEVICE, 0)])
def test_only_files_are_created(kind: VolumeKind, allowed: int) -> None:
    assert f"--allow_file_create={allowed}" in prefill_command(volume(kind=kind), 1, "/work").argv


def test_whole_target_was_written(golden: Goldens) -> None:
    assert changed_bytes("prefill", golden("prefill", job="prefill").output, volume()) == 64 * MEBIBYTE


@pytest.mark.parametrize("size", [63 * MEBIBYTE, 65 * MEBIBYTE])
def test_other_amount_is_an_error(golden: Goldens, size: int) -> None:
    with pytest.raises(OutputError, match=f"wrote {64 * MEBIBYTE} of {size} bytes"):
        changed_bytes("prefill", golden("prefill", job="prefill").output, volume(size=size))


def test_failed_prefill_is_an_error_in_fios_words(golden: Goldens) -> None:
    with pytest.raises(OutputError, match=r"exit code 1: job 1 of 1 failed: ENOSPC \(error 28\); fio: io_u error"):
        changed_bytes("prefill", golden("no-space", job="prefill").output, volume())


def test_exit_code_alone_is_an_error(golden: Goldens) -> None:
    output = with_exit_code(golden("prefill", job="prefill").output, 1)
    with pytest.raises(OutputError, match="exit code 1: fio: out of paper"):
        changed_bytes("prefill", output, volume())


def test_dropped_operations_are_an_error(golden: Goldens) -> None:
    original = golden("prefill", job="prefill")
    document = json.loads(original.document)
    document["jobs"][0]["write"]["drop_ios"] = 1
    with pytest.raises(OutputError, match="with 1 operations that were short or dropped"):
        changed_bytes("prefill", original.with_document(json.dumps(document)).output, volume())
