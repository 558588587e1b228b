"""The commands that Plimsoll runs in Ceph, and the capabilities that the users of a run get for them.

Ceph's own grants show what is not the run's: `mon "allow r"`, and with it the profiles `rbd` and `simple-rados-client`,
show the whole configuration database and the cluster's log; `mgr "allow r"` the keys of the dashboard. So users get the
map of the OSDs, and commands by name. They need no capabilities of the manager: the monitors check its commands against
their own, and pass them on.

Sources: MonCap.cc, `Monitor::handle_subscribe` and `Monitor::handle_command` of Ceph 18.2.7 and 20.2.4.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from plimsoll.api.environment import CephOption
from plimsoll.ceph.options import database_key
from plimsoll.ceph.osds import SETTINGS
from plimsoll.ceph.pools import SCRUB_FLAGS
from plimsoll.ceph.versions import gives_map_alone

FORCE = "--force"  # after a value for the configuration database: Ceph stores it even if it is not valid
_MAP = "allow service osd r"  # the map of the OSDs, and the commands that show parts of it
_OLD_MAP = "profile simple-rados-client"  # the same of monitors that require all of their reading commands for a map
Limits = Mapping[str, str | tuple[str, ...]]  # argument of a command -> its only value, or the only names of options


@dataclass(frozen=True, slots=True, kw_only=True)
class Rights:
    """What the users of a run do in a cluster."""

    pools: tuple[str, ...]  # the run's; the first has the conductor's note and the objects of tools
    quota_pool: str = ""  # the data's, if it was created for the run; the conductor sets its quota
    file_system: str = ""  # measured by the run; empty if it measures pools
    options: tuple[CephOption, ...] = ()  # set by the conductor
    actions: tuple[str, ...] = ()  # how the conductor takes OSDs away: `Out`, `Down`
    record: str = ""  # key under which it would record what to restore; empty if no run of the cluster changes anything
    version: str = ""  # of Ceph; empty if unknown

    def agent(self) -> dict[str, str]:
        """Return an agent's capabilities by kind of daemon: I/O in the run's pools, or with a file system, objects."""
        # The monitors' profile `rbd` would also allow blocklisting others, which `ceph.conf` makes librbd do without.
        io = [f"profile rbd pool={pool}" for pool in self.pools]
        return {"mon": self._map(), "osd": f"allow rw pool={self.pools[0]}" if self.file_system else ", ".join(io)}

    def conductor(self) -> dict[str, str]:
        """Return the capabilities of conductor and teardown: an agent's, the table's, and lists of all objects."""
        others = self.pools[1:] if self.file_system else ()
        grants = (_grant(prefix, limits) for prefix, command in COMMANDS.items() for limits in command.limits(self))
        return {
            "mon": ", ".join((self._map(), *grants)),
            "osd": ", ".join((self.agent()["osd"], *(f"allow r pool={pool}" for pool in others))),
        }

    def _map(self) -> str:
        return _MAP if gives_map_alone(self.version) else _OLD_MAP


def _nothing(_: Rights) -> Iterable[Limits]:
    return ()


def _set_options(rights: Rights) -> Iterable[Limits]:
    return ({"who": option.who, "name": option.name} for option in rights.options)


def _own_record(rights: Rights) -> Iterable[Limits]:
    return ({"key": rights.record},) if rights.options or rights.actions else ()


def _if_down(rights: Rights, limits: Limits) -> Iterable[Limits]:
    return (limits,) if "Down" in rights.actions else ()


def _own_file_system(rights: Rights, argument: str) -> Iterable[Limits]:
    return ({argument: rights.file_system},) if rights.file_system else ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the names of its arguments in order, and the arguments with which a conductor may run it."""

    arguments: tuple[str, ...] = ()
    limits: Callable[[Rights], Iterable[Limits]] = lambda _: ({},)  # by default with any


COMMANDS: Mapping[str, Command] = {
    "status": Command(),
    "versions": Command(),
    "df": Command(("detail",)),
    # Users who get the map of the OSDs may run these.
    "osd metadata": Command(limits=_nothing),
    "osd tree": Command(limits=_nothing),
    "osd dump": Command(limits=_nothing),
    "osd df": Command(limits=_nothing),
    "osd pool ls": Command(("detail",), _nothing),
    "osd crush rule dump": Command(limits=_nothing),
    "osd erasure-code-profile get": Command(("name",), _nothing),
    "osd pool set": Command(
        ("pool", "var", "val"),
        lambda rights: ({"pool": pool, "var": flag} for pool, flag in product(rights.pools, SCRUB_FLAGS)),
    ),
    "osd pool set-quota": Command(
        ("pool", "field", "val"),
        lambda rights: ({"pool": rights.quota_pool, "field": "max_bytes"},) if rights.quota_pool else (),
    ),
    # Of any OSD: which ones is decided after the user exists.
    "osd reweight": Command(("id", "weight"), lambda rights: ({},) if "Out" in rights.actions else ()),
    "osd set-group": Command(("flags", "who"), lambda rights: _if_down(rights, {"flags": "noup"})),
    "osd unset-group": Command(("flags", "who"), lambda rights: _if_down(rights, {"flags": "noup"})),
    "osd down": Command(("ids",), lambda rights: _if_down(rights, {})),
    "pg dump": Command(("dumpcontents",)),
    "fs get": Command(("fs_name",), lambda rights: _own_file_system(rights, "fs_name")),
    "fs volume info": Command(("vol_name",), lambda rights: _own_file_system(rights, "vol_name")),
    # An OSD's own value of one option, with Ceph's default if it is not set.
    "config show": Command(
        ("who", "key"),
        lambda rights: ({"key": tuple(dict.fromkeys((*SETTINGS, *(option.name for option in rights.options))))},),
    ),
    "config help": Command(
        ("key",), lambda rights: ({"key": name} for name in dict.fromkeys(option.name for option in rights.options))
    ),
    "config set": Command(("who", "name", "value", "force"), _set_options),
    "config rm": Command(("who", "name"), _set_options),
    # Names of keys only. They show whether another run has left options.
    "config-key ls": Command(limits=lambda rights: ({},) if rights.record else ()),
    "config-key get": Command(
        ("key",),
        lambda rights: (
            *_own_record(rights),
            *({"key": database_key(option.who, option.name)} for option in rights.options),
        ),
    ),
    "config-key set": Command(("key", "val"), _own_record),
    "config-key rm": Command(("key",), _own_record),
}
"""All commands of the monitors and the manager that Plimsoll runs: no others can be sent."""

_LONGEST = max(len(prefix.split()) for prefix in COMMANDS)
# Arguments that are no strings, and last ones that are lists and take all remaining values, with the command if needed
_TYPED: Mapping[str, Callable[[str], object]] = {"force": lambda _: True, "id": int, "weight": float}
_LISTS = frozenset({"dumpcontents", "ids", "osd set-group who", "osd unset-group who"})


def request_of(arguments: Sequence[str]) -> dict[str, object]:
    """Return the monitors' form of `ceph ARGUMENTS`; ValueError if it is not in the table."""
    for length in range(_LONGEST, 0, -1):
        prefix, values = " ".join(arguments[:length]), arguments[length:]
        command = COMMANDS.get(prefix)
        if command is None:
            continue
        *others, last = command.arguments or ("",)
        takes_list = bool({last, f"{prefix} {last}"} & _LISTS)
        if not takes_list and len(values) > len(command.arguments):
            continue
        named = zip(others if takes_list else command.arguments, values, strict=False)
        request = {"prefix": prefix, "format": "json"} | {name: _TYPED.get(name, str)(text) for name, text in named}
        rest = list(values[len(others) :])
        return request | ({last: rest} if takes_list and rest else {})
    raise ValueError(f"`ceph {' '.join(arguments)}` is not among the commands that Plimsoll may run")


def _grant(prefix: str, limits: Limits) -> str:
    values = (
        f'{name}="{value}"' if isinstance(value, str) else f'{name} regex "{"|".join(value)}"'
        for name, value in limits.items()
    )
    return " ".join((f'allow command "{prefix}"', *(("with", *values) if limits else ())))
