"""`ceph status --format json`."""

from plimsoll.ceph.document import Node
from plimsoll.ceph.watch import ClusterStatus, MetadataServer


def parse_status(text: str) -> ClusterStatus:
    """Read `ceph status`, without health checks that an administrator has muted; ValueError with the field."""
    document = Node.parse(text)
    osds, groups = document["osdmap"], document["pgmap"]
    recovering = groups.get("recovering_bytes_per_sec")
    return ClusterStatus(
        health=document["health"]["status"].text(),
        checks=_checks(document["health"]["checks"]),
        pg_states=_states(groups["pgs_by_state"]),
        osds=osds["num_osds"].count(),
        osds_up=osds["num_up_osds"].count(),
        osds_in=osds["num_in_osds"].count(),
        osds_up_since=str(osds["osd_up_since"].value),
        osds_in_since=str(osds["osd_in_since"].value),
        remapped_pgs=osds["num_remapped_pgs"].count(),
        # Ceph prints it only during recovery.
        recovering_bytes_per_second=recovering.count() if recovering else 0,
        used_bytes=groups["bytes_used"].count(),
        total_bytes=groups["bytes_total"].count(),
        metadata_servers=_metadata_servers(document.get("fsmap")),
    )


def _metadata_servers(file_systems: Node | None) -> tuple[MetadataServer, ...]:
    return tuple(
        MetadataServer(
            file_system=server["filesystem_id"].count(),
            rank=server["rank"].count(),
            name=server["name"].text(),
            state=server["status"].text(),
            process=server["gid"].count(),
        )
        for server in (file_systems["by_rank"].elements() if file_systems else ())
    )


def _checks(checks: Node) -> dict[str, str]:
    muted = {name for name, check in checks.items() if (flag := check.get("muted")) and flag.truth()}
    return {name: check["severity"].text() for name, check in checks.items() if name not in muted}


def _states(groups: Node) -> dict[str, int]:
    states: dict[str, int] = {}
    for entry in groups.elements():
        state = entry["state_name"].text()
        states[state] = states.get(state, 0) + entry["count"].count()
    return states
