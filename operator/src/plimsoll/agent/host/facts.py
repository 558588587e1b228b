"""Facts about a client's host and volume for the result, collected before preparation."""

import os
import platform
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from plimsoll.agent.host.mounts import mount_of, read_mounts
from plimsoll.agent.host.readings import Host
from plimsoll.agent.image import ImageVolume
from plimsoll.agent.shared_volume import LocalVolume, SharedVolume
from plimsoll.agent.volume import DeviceVolume, FileVolume

_MAX_CHARACTERS = 128
_CLOCK_SOURCE = "devices/system/clocksource/clocksource0/current_clocksource"
_DISCARD_LIMIT = "queue/discard_max_bytes"
_GOVERNOR = "devices/system/cpu/cpu0/cpufreq/scaling_governor"


def host_facts(host: Host) -> dict[str, JsonValue]:
    """Return facts about the host, without those that cannot be read."""
    found: dict[str, JsonValue] = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": os.cpu_count(),
        "memoryBytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    }
    words = {
        "cpuModel": _cpu_model(host.proc),
        "cpuGovernor": _word(host.sys / _GOVERNOR),
        "clockSource": _word(host.sys / _CLOCK_SOURCE),
    }
    return found | _known(words)


def volume_facts(volume: LocalVolume | ImageVolume | None, host: Host) -> dict[str, JsonValue]:
    """Return facts about a volume: file system and source of its mount, or its device's name and discard support.

    For an image, only the access path: the conductor describes the cluster.
    """
    try:
        match volume:
            case FileVolume():
                return _mount_facts(volume.path.parent, host.proc)
            case SharedVolume():
                return _mount_facts(volume.directory, host.proc)
            case DeviceVolume():
                return _device_facts(volume.path, host.sys)
            case ImageVolume():
                return {"volumeAccess": "librbd"}
            case None:
                return {}
    except OSError:
        return {}


def _mount_facts(directory: Path, proc: Path) -> dict[str, JsonValue]:
    mount = mount_of(PurePosixPath(os.path.realpath(directory)), read_mounts(proc / "self/mountinfo"))
    return _known({"volumeFileSystem": mount.file_system, "volumeSource": mount.source}) if mount else {}


def _device_facts(path: Path, sys: Path) -> dict[str, JsonValue]:
    status = path.stat()
    if not stat.S_ISBLK(status.st_mode):
        return {}
    device = sys / "dev/block" / f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    # A partition uses the queue of its disk.
    limit = _word(device / _DISCARD_LIMIT) or _word(device.resolve().parent / _DISCARD_LIMIT)
    discards: dict[str, JsonValue] = {"volumeDiscards": limit != "0"} if limit else {}
    return _known({"volumeDevice": device.readlink().name}) | discards


def _cpu_model(proc: Path) -> str:
    with suppress(OSError), (proc / "cpuinfo").open() as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return ""


def _word(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _known(words: dict[str, str]) -> dict[str, JsonValue]:
    return {name: word[:_MAX_CHARACTERS] for name, word in words.items() if word}
