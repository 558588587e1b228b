"""Versions of Ceph: how its commands and Rook write them, and which a run can use."""

import re
from collections.abc import Collection, Iterable, Mapping

from plimsoll.ceph.document import AES256K, parse_answer

OLDEST = (18, 2)  # the oldest release that Plimsoll measures; the tests run 18.2.7
EC_OPTIMIZATIONS_SINCE = 20  # the release since which all daemons can have `allow_ec_optimizations` (Tentacle)
_MEASURED = ("mon", "mgr", "osd")  # kinds of daemons on which every number depends: those that serve I/O, or count it
_FILE_SYSTEM = ("mds",)  # kinds on which numbers of a file system depend as well
_FIRST_READERS = ((19, 2, 6), (20, 2, 4))
_GIVES_MAP_ALONE = (
    20,
    2,
    4,
)  # since then, as tested, monitors give the map of the OSDs without any other right to read
_VERSION = re.compile(r"(?:\bceph version |^)(\d+)\.(\d+)\.(\d+)")
_WORDS = 5


def version_number(text: str) -> tuple[int, int, int] | None:
    """Read the number in `ceph version 20.2.4 (<commit>) tentacle (stable)` or `20.2.4-0`; None without one."""
    match = _VERSION.search(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def version_name(text: str) -> str:
    """Shorten `ceph version 18.2.7 (<commit>) reef (stable)` to `18.2.7 reef`; return any other form unchanged."""
    words = text.split()
    return f"{words[2]} {words[4]}" if words[:2] == ["ceph", "version"] and len(words) >= _WORDS else text


def parse_versions(versions_text: str, *, file_system: bool) -> tuple[str, ...]:
    """Read the versions in `ceph versions` that matter; see `versions_that_matter`. ValueError with the field."""
    kinds = parse_answer(versions_text).items()
    return versions_that_matter(
        {kind: [name for name, _ in versions.items()] for kind, versions in kinds}, file_system=file_system
    )


def versions_that_matter(versions: Mapping[str, Iterable[str]], *, file_system: bool) -> tuple[str, ...]:
    """Return the sorted versions, in Ceph's words, of the daemons that a measurement depends on, by kind of daemon.

    Gateways, mirrors and exporters do not count; metadata servers do for a `file_system`, all of them.
    """
    kinds = (*_MEASURED, *(_FILE_SYSTEM if file_system else ()))
    return tuple(sorted({version for kind in kinds for version in versions.get(kind, ())}))


def cannot_read(version: str, of_type: str) -> bool:
    """Whether a client with this `--version` is too old for keys of a type; false if its version is unknown."""
    number = version_number(version)
    if number is None or of_type != AES256K:
        return False
    # Each release reads them from one of its versions on; releases after the last listed always do.
    readers = [first for first in _FIRST_READERS if first[0] == number[0]]
    return number < (readers[0] if readers else _FIRST_READERS[-1])


def gives_map_alone(version: str) -> bool:
    """Whether monitors give the map of the OSDs to users who may read nothing else; false if the version is unknown."""
    number = version_number(version)
    return number is not None and number >= _GIVES_MAP_ALONE


def mixture_problem(cluster: str, versions: Collection[str]) -> str:
    """Return that a cluster has daemons of different versions, as a sentence; empty for `versions` of one."""
    if len(versions) <= 1:
        return ""
    names = "; ".join(sorted(version[:200] for version in versions))
    return f"{cluster} runs different versions of Ceph ({names}); wait for its upgrade to finish"


def age_problem(cluster: str, version: str) -> str:
    """Return that a version is older than any that Plimsoll measures, as a sentence; empty if it is not, or unknown."""
    number = version_number(version)
    if number is None or number[:2] >= OLDEST:
        return ""
    oldest = ".".join(map(str, OLDEST))
    return f"{cluster} runs Ceph {_text(number)}, and Plimsoll measures Ceph {oldest} and later; upgrade Ceph"


def optimizations_problem(cluster: str, version: str) -> str:
    """Return that a version has no optimizations of erasure coding, as a sentence; empty if it has, or is unknown."""
    number = version_number(version)
    if number is None or number[0] >= EC_OPTIMIZATIONS_SINCE:
        return ""
    return (
        f"{cluster} runs Ceph {_text(number)}, and optimizations of erasure coding need Ceph {EC_OPTIMIZATIONS_SINCE} "
        "or later; upgrade Ceph, or remove the field"
    )


def _text(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))
