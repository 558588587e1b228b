"""Rules for fio's parameters, for workloads and for runs with them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from plimsoll.api.line import Vary
from plimsoll.api.model import Rule
from plimsoll.tools.base import ExpandedRun, WorkloadPoint
from plimsoll.tools.target import IS_BLOCK, NO_VOLUME

READS_WHEN = "self.pattern in ['read', 'randread', 'readwrite', 'randrw']"

_NO_IMAGE = f"{NO_VOLUME} || self.storage.volume.access != 'LibRBD'"
_ONE_FILE = "w.fio.?files.orValue('FilePerClient') == 'SharedFile'"
_MIXED = "self.pattern in ['readwrite', 'randrw']"

SEARCHED_DEPTHS = (2, 4, 8, 16, 32, 64)  # depths for which fio reports how often they were full. A depth of 1 always is
# Random arrivals per second of a client. What a submission takes beyond `ALLOWED_SECONDS` shifts all later arrivals; 2
# us are a tenth of the mean gap at this rate.
MAX_OFFERED = 50_000
MAX_ARRIVALS = 4_000_000  # of a client in one measurement: fio keeps each in 110 bytes of memory, and a trace in 35
_SEARCH = "!has(self.fio) || !has(self.line)"
_UNIFORM = "self.randomDistribution == 'random'"
_CONTENTS = (
    "self.workloads.filter(w, has(w.fio)).map(w, 100 * w.fio.?compressPercent.orValue(0) + "
    "w.fio.?dedupePercent.orValue(0))"
)
_EVEN = "!has(self.arrivals) || self.arrivals != 'Poisson'"


def _all_fio(run: ExpandedRun) -> list[Any]:
    """Return the parameters of all points of fio: `FioParameters`, whose module imports this one."""
    return [point.parameters for point in run.points_of("fio")]


# Fields that do not go with a load of which several operations are in flight when they are due: the field, what has to
# hold in CEL and in Python, why, and for which loads of a search.
_LOADS: tuple[tuple[str, str, Callable[[Any], bool], str, tuple[Vary, ...]], ...] = (
    (
        ".pattern",
        "!(FIO.pattern in ['trim', 'randtrim'])",
        lambda fio: not fio.removes_data,
        "cannot be a trim with LOAD, because fio runs trims one after the other; use reads or writes",
        (*Vary,),
    ),
    (
        ".fsyncEvery",
        "FIO.fsyncEvery == 0",
        lambda fio: not fio.fsync_every,
        "must be 0 with LOAD, because operations would wait for each sync; use 0",
        (*Vary,),
    ),
    (
        ".engine",
        "(!has(FIO.engine) || !(FIO.engine in ['psync', 'sync']))",
        lambda fio: not fio.is_synchronous,
        "must be asynchronous with LOAD, so that more than one operation can be in flight; use libaio",
        (*Vary,),
    ),
    (
        ".directIo",
        "FIO.directIo",
        lambda fio: fio.direct_io,
        "must be true with LOAD, because buffered operations are submitted one after the other; remove it",
        (*Vary,),
    ),
    (
        ".until",
        "!has(FIO.until)",
        lambda fio: fio.until is None,
        "cannot be set with LOAD, whose trials end after a given time; remove it",
        (*Vary,),
    ),
    (
        ".jobs",
        "FIO.jobs == 1",
        lambda fio: fio.jobs == 1,
        "must be 1 with LOAD, because fio can crash when several jobs replay arrivals; use more clients",
        (Vary.RATE,),
    ),
)


def _holds_in_open_loop(holds: Callable[[Any], bool], fio: Any) -> bool:  # noqa: ANN401 - `FioParameters`
    return not fio.is_open_loop or holds(fio)


def _holds_in_search(varied: tuple[Vary, ...], holds: Callable[[Any], bool], point: WorkloadPoint) -> bool:
    return point.vary not in varied or holds(point.parameters)


PARAMETER_RULES = (
    *(
        Rule(
            field_path=field,
            rule=f"{_EVEN} || {rule.replace('FIO', 'self')}",
            holds=partial(_holds_in_open_loop, holds),
            message=message.replace("LOAD", "arrivals Poisson"),
        )
        for field, rule, holds, message, _ in _LOADS
    ),
    Rule(
        # Jobs end at different times, readwrite would read one half and write the same half, and buffered data may
        # still be in memory at the end.
        field_path=".until",
        rule="!has(self.until) || (self.jobs == 1 && self.pattern != 'readwrite' && self.directIo)",
        holds=lambda fio: fio.until is None or (fio.jobs == 1 and fio.pattern != "readwrite" and fio.direct_io),
        message="needs jobs 1, directIo true and a pattern other than readwrite; change them, or remove it",
    ),
    Rule(
        field_path=".arrivals",
        rule="!has(self.arrivals) || has(self.rateIops)",
        holds=lambda fio: fio.arrivals is None or fio.rate_iops is not None,
        message="has no meaning without rateIops; set rateIops, or remove it",
    ),
    Rule(
        field_path=".arrivals",
        rule=f"{_EVEN} || !has(self.rateIops) || self.rateIops <= {MAX_OFFERED}",
        holds=lambda fio: not fio.is_open_loop or (fio.rate_iops or 0) <= MAX_OFFERED,
        message=f"cannot be Poisson with more than {MAX_OFFERED} IOPS of a client; lower rateIops, or use more clients",
    ),
    Rule(
        field_path=".ioDepth",
        rule="!has(self.engine) || !(self.engine in ['psync', 'sync']) || self.ioDepth.all(depth, depth == 1)",
        holds=lambda fio: not fio.is_synchronous or fio.io_depth == 1,
        message="has no effect beyond 1 with a synchronous engine; use 1 and raise jobs, or use libaio or io_uring",
    ),
    Rule(
        field_path=".blockSize",
        rule="!has(self.blockSizeMix) || !has(self.blockSize)",
        holds=lambda fio: (fio.block_size is None) == (fio.block_size_mix is not None),
        message="must be absent with blockSizeMix, which has the sizes; remove one of them",
    ),
    Rule(
        field_path=".blockSizeMix",
        rule="!has(self.blockSizeMix) || self.blockSizeMix.map(part, part.percent).sum() == 100",
        holds=lambda fio: sum(fio.block_sizes.values()) == 100,  # noqa: PLR2004 - all of them
        message="must have shares that add up to 100 percent; change them",
        remedy=lambda fio: f"has shares that add up to {sum(fio.block_sizes.values())} percent; make them 100 together",
    ),
    Rule(
        field_path=".blockSizeMix",
        rule="!has(self.blockSizeMix) || !has(self.until)",
        holds=lambda fio: fio.block_size_mix is None or fio.until is None,
        message="cannot be set with until, where fio shortens overlapping blocks; use blockSize, or remove until",
    ),
    Rule(
        field_path=".arrivals",
        rule="!has(self.blockSizeMix) || !has(self.rateIops) || self.?arrivals.orValue('Even') == 'Poisson'",
        holds=lambda fio: fio.block_size_mix is None or fio.rate_iops is None or fio.is_open_loop,
        message="must be Poisson with rateIops and blockSizeMix, because fio would limit bytes as if all blocks had "
        "the smallest size; set it to Poisson, or use blockSize, or remove rateIops",
    ),
    Rule(
        field_path=".randomDistribution",
        rule=f"{_UNIFORM} || (self.pattern.startsWith('rand') && !has(self.until))",
        holds=lambda fio: fio.skew is None or (fio.pattern.is_random and fio.until is None),
        message="applies only to random patterns without until; remove it, or change pattern or until",
    ),
    Rule(
        field_path=".readPercent",
        rule=f"!has(self.readPercent) || {_MIXED}",
        holds=lambda fio: fio.read_percent is None or fio.pattern.is_mixed,
        message="applies only to mixed patterns; remove it, or use readwrite or randrw",
    ),
    Rule(
        field_path=".fsyncEvery",
        rule="self.fsyncEvery == 0 || self.pattern in ['write', 'randwrite', 'readwrite', 'randrw']",
        holds=lambda fio: not fio.fsync_every or fio.pattern.writes,
        message="has no meaning for a pattern that does not write; remove it",
    ),
    Rule(
        field_path=".readBack",
        rule="!has(self.readBack) || self.pattern in ['read', 'randread']",
        holds=lambda fio: fio.read_back is None or fio.pattern in ("read", "randread"),
        message="applies only to the patterns read and randread; remove it, or use one of them",
    ),
    Rule(
        field_path=".rateIops",
        rule=f"!has(self.rateIops) || (!({_MIXED}) ? self.rateIops >= self.jobs : "
        "[self.?readPercent.orValue(50), 100 - self.?readPercent.orValue(50)].all(share, "
        "self.rateIops * share >= 100 * self.jobs))",
        holds=lambda fio: fio.rate_iops is None or fio.rate_iops >= fio.load_step(Vary.RATE),
        message="must leave at least one operation per second for every job and direction; raise it, or lower jobs",
        remedy=lambda fio: (
            "is less than one operation per second for every job and direction; use at least "
            f"{fio.load_step(Vary.RATE)}, or lower jobs"
        ),
    ),
)

WORKLOAD_RULES = (
    *(
        Rule(
            field_path=f".fio{field}",
            rule=f"{_SEARCH} || !(self.line.vary in {[*map(str, varied)]}) || {rule.replace('FIO', 'self.fio')}",
            holds=partial(_holds_in_search, varied, holds),
            message=message.replace("LOAD", "line" if len(varied) > 1 else "line and vary Rate"),
        )
        for field, rule, holds, message, varied in _LOADS
    ),
    Rule(
        field_path=".rampSeconds",
        rule="!has(self.fio) || !has(self.fio.until) || self.rampSeconds == 0",
        holds=lambda point: point.parameters.until is None or not point.workload.ramp_seconds,
        message="must be 0 with until, because the ramp would consume data outside the measurement; set it to 0",
    ),
    Rule(
        field_path=".fio.until",
        rule="!has(self.fio) || !has(self.disturb) || !has(self.fio.until)",
        holds=lambda point: point.workload.disturb is None or point.parameters.until is None,
        message="cannot be set with disturb, which ends before runtimeSeconds have passed; remove one of them",
    ),
    Rule(
        field_path=".fio.ioDepth",
        rule=f"{_SEARCH} || self.line.vary != 'Rate' || self.fio.ioDepth.all(depth, depth in {list(SEARCHED_DEPTHS)})",
        holds=lambda point: point.vary is not Vary.RATE or point.parameters.io_depth in SEARCHED_DEPTHS,
        message="must be 2, 4, 8, 16, 32 or 64 with line and vary Rate, because only for these fio reports how often "
        "they were full; use 64, and more clients",
    ),
    Rule(
        field_path=".fio.rateIops",
        rule=f"{_SEARCH} || !has(self.fio.rateIops)",
        holds=lambda point: not point.vary or point.parameters.rate_iops is None,
        message="must be absent with line, which varies the load; remove it, or remove line",
    ),
    Rule(
        field_path=".fio.ioDepth",
        rule=f"{_SEARCH} || self.line.vary != 'Depth' || self.fio.ioDepth == [1]",
        holds=lambda point: point.vary is not Vary.DEPTH or point.parameters.io_depth == 1,
        message="must be absent, because line varies it; remove it, or remove line",
    ),
)

RUN_RULES = (
    Rule(
        field_path=".storage.volume.sharing",
        rule=f"{NO_VOLUME} || self.storage.volume.sharing == 'Shared' || "
        f"!self.workloads.exists(w, has(w.fio) && ({_ONE_FILE} || has(w.fio.readBack)))",
        holds=lambda run: (
            not run.volume
            or run.volume.is_shared
            or not any(fio.shares_file or fio.reads_next_client for fio in _all_fio(run))
        ),
        message="must be Shared, because a workload has files SharedFile or readBack; set it to Shared on a file "
        "system of Rook or a StorageClass that supports ReadWriteMany, or remove these fields",
    ),
    Rule(
        field_path=".workloads",
        rule=f"!self.workloads.exists(w, has(w.fio) && {_ONE_FILE}) || "
        f"self.workloads.all(w, !has(w.fio) || {_ONE_FILE})",
        holds=lambda run: len({fio.shares_file for fio in _all_fio(run)}) <= 1,
        message="cannot have files SharedFile in only some workloads, because clients prefill one kind of files; set "
        "it in all of them, or split the run",
    ),
    Rule(
        field_path=".workloads",
        rule=f"!self.workloads.exists(w, has(w.fio)) || {_CONTENTS}.min() == {_CONTENTS}.max()",
        holds=lambda run: len({fio.content for fio in _all_fio(run)}) <= 1,
        message="must agree on compressPercent and dedupePercent where they use fio, because they share the data sets; "
        "set the same in all of them, or split the run",
    ),
    Rule(
        field_path=".workloads",
        rule="self.workloads.all(w, !has(w.fio) || !has(w.fio.readBack) || "
        "(has(w.clients) ? w.clients.all(clients, clients >= 2) : self.clients.count >= 2))",
        holds=lambda run: all(
            min(point.workload.clients or (run.spec.clients.count,)) >= 2  # noqa: PLR2004 - as the message explains
            for point in run.points_of("fio")
            if point.parameters.reads_next_client
        ),
        message="must have at least 2 clients where readBack is NextClient, because each reads what another one wrote; "
        "raise clients, or remove readBack",
    ),
    Rule(
        field_path=".storage.volume.mode",
        rule=f"{NO_VOLUME} || {IS_BLOCK} || "
        "!self.workloads.exists(w, has(w.fio) && w.fio.pattern in ['trim', 'randtrim'])",
        holds=lambda run: (
            not run.volume or run.volume.mode == "Block" or not any(fio.removes_data for fio in _all_fio(run))
        ),
        message="must be Block, because a workload trims; use a volume of mode Block, which file systems do not have, "
        "or leave out the workloads that trim",
    ),
    Rule(
        field_path=".workloads",
        rule=f"{NO_VOLUME} || self.workloads.all(w, !has(w.fio) || !has(w.fio.engine) || "
        "(w.fio.engine == 'rbd') == (self.storage.volume.access == 'LibRBD'))",
        holds=lambda run: (
            not run.volume
            or all(fio.engine is None or (fio.engine == "rbd") == run.opens_images for fio in _all_fio(run))
        ),
        message="must have engine rbd with access LibRBD and cannot have it without; leave engine out, or change "
        "spec.storage.volume.access",
    ),
    Rule(
        field_path=".workloads",
        rule=f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || w.fio.directIo)",
        holds=lambda run: not run.opens_images or all(fio.direct_io for fio in _all_fio(run)),
        message="must have directIo true with access LibRBD, because images bypass the page cache; librbd's own cache "
        "is spec.storage.volume.rbdCache",
    ),
    Rule(
        field_path=".workloads",
        rule=f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || "
        "(w.fio.?arrivals.orValue('Even') != 'Poisson' && (!has(w.line) || w.line.vary != 'Rate')))",
        holds=lambda run: (
            not run.opens_images
            or not any(point.parameters.is_open_loop or point.vary is Vary.RATE for point in run.points_of("fio"))
        ),
        message="cannot have arrivals Poisson, or line with vary Rate, with access LibRBD, because fio reads "
        "completions of librbd only when its depth is full; use access PVC, which storage.ceph does not have, or "
        "arrivals Even, or vary Depth without ioDepth",
    ),
    Rule(
        field_path=".workloads",
        rule=f"{_NO_IMAGE} || "
        "self.workloads.all(w, !has(w.fio) || w.fio.jobs == 1 || w.fio.pattern in ['read', 'randread'])",
        # With two jobs, a write took 22 ms instead of 3.
        holds=lambda run: (
            not run.opens_images or all(fio.jobs == 1 or fio.pattern in ("read", "randread") for fio in _all_fio(run))
        ),
        message="cannot have several jobs that write or trim with access LibRBD, because they take the image's lock "
        "from one another; raise ioDepth, or the number of clients",
    ),
)
