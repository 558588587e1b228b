"""Observes the host and the tool during one trial."""

from contextlib import suppress
from pathlib import PurePosixPath

from plimsoll.agent.host.mounts import mount_of, read_mounts
from plimsoll.agent.host.open_files import DataSetIdentity, OpenFiles
from plimsoll.agent.host.processes import ToolAccount, ToolCounters
from plimsoll.agent.host.readings import Host, HostSnapshot
from plimsoll.agent.host.use import DataSetStorage, host_use
from plimsoll.measure.sample import HostUse, Measurement

MAX_SNAPSHOTS = 1024
"""When there are more, every other one is dropped: a trial's ends stay known to a thousandth of its length."""

_MAX_CHARACTERS = 100


class HostObservation:
    """The observation of one trial.

    The constructor takes the first snapshot, before T0, so that nothing delays the tool's start.
    """

    def __init__(self, host: Host, data_set: DataSetIdentity | None, *, work_directory: str) -> None:
        self._host = host
        self._storage = _storage(host, data_set) if data_set else DataSetStorage()
        self._files = OpenFiles(data_set, work_directory=work_directory, proc=host.proc) if data_set else None
        cgroup = host.cgroup()
        self._bounds = host.bounds(cgroup)
        self._own_cgroup = cgroup.own(host.proc) if cgroup else None
        self._account = ToolAccount(host.proc)
        self._snapshots: list[HostSnapshot] = []
        self._stride = 1
        self._looks = 0
        self._take_snapshot(ToolCounters())

    def look(self, pid: int) -> None:
        """Observe the host and the tool, which runs as process `pid`. Call it about every second.

        A tool that was visible and no longer is has ended: its I/O is in the last snapshot, and only there.
        """
        self._looks += 1
        if self._looks % self._stride == 0:
            tool = self._account.look(pid)
            if tool is not None or not self._account.is_visible:
                self._take_snapshot(tool)
        if self._files is not None:
            self._files.look(pid)

    def end(self) -> None:
        """Take the last snapshot, after the tool has ended."""
        self._take_snapshot(self._account.end())

    def host_use(self, measurement: Measurement | None) -> HostUse | None:
        """Return the host's load during the measurement; None if there is none or snapshots do not cover it."""
        if measurement is None or self._bounds is None:
            return None
        return host_use(
            self._bounds,
            self._snapshots,
            start=measurement.started_at,
            runtime=measurement.runtime,
            storage=self._storage,
        )

    @property
    def foreign_target(self) -> str:
        """See `OpenFiles.foreign_target`; empty without a data set."""
        return self._files.foreign_target if self._files else ""

    def _take_snapshot(self, tool: ToolCounters | None) -> None:
        snapshot = self._host.snapshot(
            cgroup=self._own_cgroup, device=self._storage.device, disk=self._storage.disk, tool=tool
        )
        if snapshot is None:
            return
        if len(self._snapshots) >= MAX_SNAPSHOTS:
            del self._snapshots[1::2]
            self._stride *= 2
        self._snapshots.append(snapshot)


def _storage(host: Host, data_set: DataSetIdentity) -> DataSetStorage:
    device = data_set.block_device
    if device is not None:
        # A file may be fragmented, which splits operations too.
        uncut = host.uncut_bytes(device) if data_set.file is None else None
        return DataSetStorage(device=device, disk=host.disk_of(device), uncut_bytes=uncut)
    with suppress(OSError):
        mount = mount_of(PurePosixPath(data_set.path), read_mounts(host.proc / "self/mountinfo"))
        if mount is not None:
            return DataSetStorage(file_system=mount.file_system[:_MAX_CHARACTERS])
    return DataSetStorage(file_system="an unknown file system")
