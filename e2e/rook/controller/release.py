"""The release of Rook that the stand-in plays: each was recorded with one release of Ceph."""

from collections.abc import Mapping
from enum import Enum

_FIRST_OF_NEW_ROOK = 20


class Release(Enum):
    """A release of Rook."""

    ROOK_1_18 = "1.18.11, recorded with Ceph 18.2.7"
    ROOK_2026 = "master of 2026-08-21, recorded with Ceph 20.2.4"

    @property
    def is_new(self) -> bool:
        """Whether it is the newer one: README.md lists what that does differently."""
        return self is Release.ROOK_2026


def release_for(versions: Mapping[str, int]) -> Release:
    """Return the release to play, given the versions of the monitors, `ceph version 20.2.4 (...)` -> number."""
    number = next(iter(versions)).split()[2]
    return Release.ROOK_2026 if int(number.partition(".")[0]) >= _FIRST_OF_NEW_ROOK else Release.ROOK_1_18
