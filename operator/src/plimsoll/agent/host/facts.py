"""What a result should say of where a client ran, as far as it is known before anything is prepared."""

import os
import platform
import stat
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from plimsoll.agent.host.mounts import mount_of, read_mounts
from plimsoll.agent.host.readings import Host
from plimsoll.agent.volume import DeviceVolume, FileVolume, Volume

_MAX_CHARACTERS = 128
_CLOCK_SOURCE = "devices/system/clocksource/clocksource0/current_clocksource"
_GOVERNOR = "devices/system/cpu/cpu0/cpufreq/scaling_governor"


def host_facts(host: Host) -> dict[str, JsonValue]:
    """Return what is known of the host; what cannot be read is left out."""
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
    return found | _told(words)


def volume_facts(volume: Volume | None, host: Host) -> dict[str, JsonValue]:
    """Return what a volume lies on: file system and source of its mount, or what the kernel calls its device."""
    try:
        match volume:
            case FileVolume():
                directory = PurePosixPath(os.path.realpath(volume.path.parent))
                mount = mount_of(directory, read_mounts(host.proc / "self/mountinfo"))
                return _told({"volumeFileSystem": mount.file_system, "volumeSource": mount.source}) if mount else {}
            case DeviceVolume():
                return _told({"volumeDevice": _device_name(volume.path, host.sys)})
            case None:
                return {}
    except OSError:
        return {}


def _device_name(path: Path, sys: Path) -> str:
    status = path.stat()
    if not stat.S_ISBLK(status.st_mode):
        return ""
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    return (sys / "dev/block" / number).readlink().name


def _cpu_model(proc: Path) -> str:
    with suppress(OSError), (proc / "cpuinfo").open() as file:
        return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), "")
    return ""


def _word(path: Path) -> str:
    with suppress(OSError):
        return path.read_text().strip()
    return ""


def _told(words: dict[str, str]) -> dict[str, JsonValue]:
    return {name: word[:_MAX_CHARACTERS] for name, word in words.items() if word}
