"""CEL rules for fio's parameters and for runs with them; `parameters` and `command` check the same in local mode."""

from plimsoll.api.model import Rule
from plimsoll.tools.target import IS_BLOCK, NO_VOLUME

READS_WHEN = "w.fio.pattern in ['read', 'randread', 'readwrite', 'randrw']"

_NO_IMAGE = f"{NO_VOLUME} || self.storage.volume.access != 'LibRBD'"
_ONE_FILE = "w.fio.?files.orValue('FilePerClient') == 'SharedFile'"
_MIXED = "self.pattern in ['readwrite', 'randrw']"

ONE_JOB_ONLY = "cannot be set with several jobs, which end at different times; use jobs 1, or remove it"
NOT_BOTH_WAYS = (
    "cannot be set for readwrite, which would read one half of the data set and write the same half; use randrw, or "
    "remove it"
)
NO_ARRIVALS = "has no meaning without rateIops; set rateIops, or remove it"
NOT_BUFFERED = "cannot be set with directIo false, because data may still be in memory at the end; set directIo true"
NOT_READ_BACK = "applies only to the patterns read and randread; remove it, or use one of them"
NEEDS_SHARING = "needs a volume that all clients share; set spec.storage.volume.sharing to Shared, or remove it"
NO_RAMP = "must be 0 with until DataSetDone, because the ramp would do a part of the data set unmeasured; set it to 0"

SEARCHED_DEPTHS = (2, 4, 8, 16, 32, 64)
"""Depths of which fio tells how often they were full. A depth of 1 always is."""

MAX_OFFERED = 10_000
"""Random arrivals per second of a client. Each submission shifts all later arrivals by its own time, about 10 us: by a
tenth of the mean gap at this rate."""

MAX_ARRIVALS = 4_000_000
"""Random arrivals of a client in one measurement. fio keeps them all in memory, in about 110 bytes each; their traces
have about 35 bytes for each."""

NO_ARRIVALS_OF_TRIMS = "cannot be Poisson for trims, because fio runs them one after the other; use reads or writes"
NO_ARRIVALS_OF_SYNCS = (
    "cannot be Poisson with fsyncEvery, because fio does not sync while it replays arrivals; remove one of them"
)
NO_SYNCHRONOUS_ARRIVALS = (
    "cannot be Poisson with a synchronous engine, which delays what is due during an operation; use libaio"
)
NO_BUFFERED_ARRIVALS = (
    "must be true with arrivals Poisson, because buffered operations are submitted one after the other; remove it"
)
NO_ARRIVALS_UNTIL = "cannot be set with arrivals Poisson, which visit random blocks for a given time; remove it"
NO_ARRIVALS_OF_JOBS = "cannot be Poisson with several jobs, because fio can crash when several replay arrivals; use 1"
TOO_MANY_ARRIVALS = (
    f"cannot be Poisson with more than {MAX_OFFERED} operations per second of a client; lower rateIops, or use more "
    "clients"
)
NO_ARRIVALS_OF_IMAGE = (
    "cannot have arrivals Poisson, or line with vary Rate, with access LibRBD, because fio reads completions of librbd "
    "only when its depth is full; use access PVC, or arrivals Even, or vary Depth"
)

NO_TRIM_SEARCH = "cannot be a trim with line, because fio runs trims one after the other; use reads or writes"
NO_BUFFERED_SEARCH = (
    "must be true with line, because buffered operations are submitted one after the other; remove it, or remove line"
)
NO_UNTIL_SEARCH = "cannot be set with line, whose trials have equal durations; remove it, or remove line"
NO_SYNCHRONOUS_SEARCH = "must be asynchronous with line, so that more than one operation can be in flight; use libaio"
DEPTH_OF_SEARCH = (
    "must be 2, 4, 8, 16, 32 or 64 with line and vary Rate, because only of these fio tells how often they were full; "
    "use 64, and more clients if more operations should be in flight"
)
NO_JOBS_OF_RATES = (
    "must be 1 with line and vary Rate, because fio can crash when several jobs replay arrivals; use more clients"
)
NO_SYNC_OF_RATES = "must be 0 with line and vary Rate, because fio does not sync while it replays arrivals; use 0"
NO_RATE_OF_DEPTHS = (
    "cannot be set with line and vary Depth, because it would limit the load; remove it, or use vary Rate"
)
NO_SYNC_OF_DEPTHS = "must be 0 with line and vary Depth, because operations wait for each sync; use 0, or vary Rate"

_SEARCH = "!has(self.fio) || !has(self.line)"
_OPEN = f"{_SEARCH} || self.line.vary != 'Rate'"
_CLOSED = f"{_SEARCH} || self.line.vary != 'Depth'"

_EVEN = "!has(self.arrivals) || self.arrivals != 'Poisson'"


def _rule(field: str, condition: str, message: str) -> Rule:
    return Rule(field_path=field, rule=condition, message=message)


PARAMETER_RULES = (
    _rule(".until", "!has(self.until) || self.jobs == 1", ONE_JOB_ONLY),
    _rule(".until", "!has(self.until) || self.pattern != 'readwrite'", NOT_BOTH_WAYS),
    _rule(".until", "!has(self.until) || self.directIo", NOT_BUFFERED),
    _rule(".arrivals", "!has(self.arrivals) || has(self.rateIops)", NO_ARRIVALS),
    _rule(".arrivals", f"{_EVEN} || !(self.pattern in ['trim', 'randtrim'])", NO_ARRIVALS_OF_TRIMS),
    _rule(".arrivals", f"{_EVEN} || self.fsyncEvery == 0", NO_ARRIVALS_OF_SYNCS),
    _rule(".arrivals", f"{_EVEN} || !has(self.engine) || !(self.engine in ['psync', 'sync'])", NO_SYNCHRONOUS_ARRIVALS),
    _rule(".arrivals", f"{_EVEN} || !has(self.rateIops) || self.rateIops <= {MAX_OFFERED}", TOO_MANY_ARRIVALS),
    _rule(".arrivals", f"{_EVEN} || self.jobs == 1", NO_ARRIVALS_OF_JOBS),
    _rule(".directIo", f"{_EVEN} || self.directIo", NO_BUFFERED_ARRIVALS),
    _rule(".until", f"{_EVEN} || !has(self.until)", NO_ARRIVALS_UNTIL),
    _rule(
        ".ioDepth",
        "!has(self.engine) || !(self.engine in ['psync', 'sync']) || self.ioDepth.all(depth, depth == 1)",
        "has no effect beyond 1 with a synchronous engine; use 1 and raise jobs, or use libaio or io_uring",
    ),
    _rule(
        ".readPercent",
        f"!has(self.readPercent) || {_MIXED}",
        "applies only to mixed patterns; remove it, or use readwrite or randrw",
    ),
    _rule(
        ".fsyncEvery",
        "self.fsyncEvery == 0 || self.pattern in ['write', 'randwrite', 'readwrite', 'randrw']",
        "has no meaning for a pattern that does not write; remove it",
    ),
    _rule(".readBack", "!has(self.readBack) || self.pattern in ['read', 'randread']", NOT_READ_BACK),
    _rule(
        ".rateIops",
        f"!has(self.rateIops) || (!({_MIXED}) ? self.rateIops >= self.jobs : "
        "[self.?readPercent.orValue(50), 100 - self.?readPercent.orValue(50)].all(share, "
        "self.rateIops * share >= 100 * self.jobs))",
        "must leave at least one operation per second for every job and direction; raise it, or lower jobs",
    ),
)

WORKLOAD_RULES = (
    _rule(".rampSeconds", "!has(self.fio) || !has(self.fio.until) || self.rampSeconds == 0", NO_RAMP),
    _rule(".fio.pattern", f"{_SEARCH} || !(self.fio.pattern in ['trim', 'randtrim'])", NO_TRIM_SEARCH),
    _rule(".fio.directIo", f"{_SEARCH} || self.fio.directIo", NO_BUFFERED_SEARCH),
    _rule(".fio.until", f"{_SEARCH} || !has(self.fio.until)", NO_UNTIL_SEARCH),
    _rule(
        ".fio.engine",
        f"{_SEARCH} || !has(self.fio.engine) || !(self.fio.engine in ['psync', 'sync'])",
        NO_SYNCHRONOUS_SEARCH,
    ),
    _rule(
        ".fio.rateIops",
        f"{_OPEN} || !has(self.fio.rateIops)",
        "must be absent, because line varies it; remove it, or remove line",
    ),
    _rule(
        ".fio.ioDepth",
        f"{_OPEN} || (has(self.fio.engine) && self.fio.engine in ['psync', 'sync']) || "
        f"self.fio.ioDepth.all(depth, depth in {list(SEARCHED_DEPTHS)})",
        DEPTH_OF_SEARCH,
    ),
    _rule(".fio.jobs", f"{_OPEN} || self.fio.jobs == 1", NO_JOBS_OF_RATES),
    _rule(".fio.fsyncEvery", f"{_OPEN} || self.fio.fsyncEvery == 0", NO_SYNC_OF_RATES),
    _rule(".fio.rateIops", f"{_CLOSED} || !has(self.fio.rateIops)", NO_RATE_OF_DEPTHS),
    _rule(".fio.fsyncEvery", f"{_CLOSED} || self.fio.fsyncEvery == 0", NO_SYNC_OF_DEPTHS),
    _rule(
        ".fio.ioDepth",
        f"{_CLOSED} || self.fio.ioDepth == [1]",
        "must be absent, because line varies it; remove it, or remove line",
    ),
)

RUN_RULES = (
    _rule(
        ".storage.volume.sharing",
        f"{NO_VOLUME} || self.storage.volume.sharing == 'Shared' || "
        f"!self.workloads.exists(w, has(w.fio) && ({_ONE_FILE} || has(w.fio.readBack)))",
        "must be Shared, because a workload has files SharedFile or readBack; set it to Shared, or remove these fields",
    ),
    _rule(
        ".workloads",
        f"!self.workloads.exists(w, has(w.fio) && {_ONE_FILE}) || self.workloads.all(w, !has(w.fio) || {_ONE_FILE})",
        "cannot have files SharedFile in only some workloads, because clients prefill one kind of files; set it in all "
        "of them, or split the run",
    ),
    _rule(
        ".workloads",
        "self.workloads.all(w, !has(w.fio) || !has(w.fio.readBack) || "
        "(has(w.clients) ? w.clients.all(clients, clients >= 2) : self.clients.count >= 2))",
        "must have at least 2 clients where readBack is NextClient, because each reads what another one wrote; raise "
        "clients, or remove readBack",
    ),
    _rule(
        ".storage.volume.mode",
        f"{NO_VOLUME} || {IS_BLOCK} || !self.workloads.exists(w, has(w.fio) && w.fio.pattern in ['trim', 'randtrim'])",
        "must be Block, because a workload trims; set it to Block, or leave out the workloads that trim",
    ),
    _rule(
        ".workloads",
        f"{NO_VOLUME} || self.workloads.all(w, !has(w.fio) || !has(w.fio.engine) || "
        "(w.fio.engine == 'rbd') == (self.storage.volume.access == 'LibRBD'))",
        "must have engine rbd with access LibRBD and cannot have it without; leave engine out, or change "
        "spec.storage.volume.access",
    ),
    _rule(
        ".workloads",
        f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || w.fio.directIo)",
        "must have directIo true with access LibRBD, because images bypass the page cache; librbd's own cache is "
        "spec.storage.volume.rbdCache",
    ),
    _rule(
        ".workloads",
        f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || "
        "(w.fio.?arrivals.orValue('Even') != 'Poisson' && (!has(w.line) || w.line.vary != 'Rate')))",
        NO_ARRIVALS_OF_IMAGE,
    ),
    _rule(
        ".workloads",
        f"{_NO_IMAGE} || "
        "self.workloads.all(w, !has(w.fio) || w.fio.jobs == 1 || w.fio.pattern in ['read', 'randread'])",
        "cannot have several jobs that write or trim with access LibRBD, because they take the image's lock from one "
        "another; raise ioDepth, or the number of clients",
    ),
)
