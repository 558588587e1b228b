"""How many operations filled the depth of fio.

With each submission fio counts the operations in flight, the new one included, in `iodepth_level`: the bucket `16`
contains 16 to 31, and `>=64` everything from 64 (fio: `io_u_mark_depth`). A depth that begins a bucket is the only one
in it that can occur, so its share is exact, except that fio prints less than 0.1 % as 0.1 %.
"""

import math
from collections.abc import Sequence

from plimsoll.tools.fio.series import DIRECTIONS
from plimsoll.tools.reading import JsonObject

EXACT_DEPTHS = (1, 2, 4, 8, 16, 32, 64)
"""Depths of which fio reports how often they were full."""


def depth_full_share(jobs: Sequence[JsonObject], depth: int) -> float | None:
    """Return the share of submissions that filled the depth, 0 to 1, over all jobs.

    None if fio does not report it for that depth, or if nothing was submitted.

    Raises:
        OutputError: a share is missing, or is not a number.

    """
    if depth not in EXACT_DEPTHS:
        return None
    bucket = str(depth) if depth < EXACT_DEPTHS[-1] else f">={depth}"
    submitted = [sum(job.child(operation).count("total_ios") for operation in DIRECTIONS) for job in jobs]
    if not any(submitted):
        return None
    filled = (ios * job.child("iodepth_level").number(bucket) / 100 for job, ios in zip(jobs, submitted, strict=True))
    # Buckets are percentages of a total that lacks submissions at the end of the ramp.
    return min(1.0, math.fsum(filled) / sum(submitted))
