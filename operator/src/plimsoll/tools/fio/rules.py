"""CEL rules for fio's parameters and for runs with them; `parameters` and `target` check the same in local mode."""

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

PARAMETER_RULES = (
    Rule(
        rule="!has(self.until) || self.jobs == 1",
        message=ONE_JOB_ONLY,
        field_path=".until",
    ),
    Rule(
        rule="!has(self.until) || self.pattern != 'readwrite'",
        message=NOT_BOTH_WAYS,
        field_path=".until",
    ),
    Rule(
        rule="!has(self.until) || self.directIo",
        message=NOT_BUFFERED,
        field_path=".until",
    ),
    Rule(
        rule="!has(self.arrivals) || has(self.rateIops)",
        message=NO_ARRIVALS,
        field_path=".arrivals",
    ),
    Rule(
        rule=f"{_EVEN} || !(self.pattern in ['trim', 'randtrim'])",
        message=NO_ARRIVALS_OF_TRIMS,
        field_path=".arrivals",
    ),
    Rule(rule=f"{_EVEN} || self.fsyncEvery == 0", message=NO_ARRIVALS_OF_SYNCS, field_path=".arrivals"),
    Rule(
        rule=f"{_EVEN} || !has(self.engine) || !(self.engine in ['psync', 'sync'])",
        message=NO_SYNCHRONOUS_ARRIVALS,
        field_path=".arrivals",
    ),
    Rule(
        rule=f"{_EVEN} || !has(self.rateIops) || self.rateIops <= {MAX_OFFERED}",
        message=TOO_MANY_ARRIVALS,
        field_path=".arrivals",
    ),
    Rule(rule=f"{_EVEN} || self.jobs == 1", message=NO_ARRIVALS_OF_JOBS, field_path=".arrivals"),
    Rule(rule=f"{_EVEN} || self.directIo", message=NO_BUFFERED_ARRIVALS, field_path=".directIo"),
    Rule(rule=f"{_EVEN} || !has(self.until)", message=NO_ARRIVALS_UNTIL, field_path=".until"),
    Rule(
        rule="!has(self.engine) || !(self.engine in ['psync', 'sync']) || self.ioDepth.all(depth, depth == 1)",
        message="has no effect beyond 1 with a synchronous engine; use 1 and raise jobs, or use libaio or io_uring",
        field_path=".ioDepth",
    ),
    Rule(
        rule=f"!has(self.readPercent) || {_MIXED}",
        message="applies only to mixed patterns; remove it, or use readwrite or randrw",
        field_path=".readPercent",
    ),
    Rule(
        rule="self.fsyncEvery == 0 || self.pattern in ['write', 'randwrite', 'readwrite', 'randrw']",
        message="has no meaning for a pattern that does not write; remove it",
        field_path=".fsyncEvery",
    ),
    Rule(
        rule="!has(self.readBack) || self.pattern in ['read', 'randread']",
        message=NOT_READ_BACK,
        field_path=".readBack",
    ),
    Rule(
        rule=(
            f"!has(self.rateIops) || (!({_MIXED}) ? self.rateIops >= self.jobs : "
            "[self.?readPercent.orValue(50), 100 - self.?readPercent.orValue(50)].all(share, "
            "self.rateIops * share >= 100 * self.jobs))"
        ),
        message="must leave at least one operation per second for every job and direction; raise it, or lower jobs",
        field_path=".rateIops",
    ),
)

WORKLOAD_RULES = (
    Rule(
        rule="!has(self.fio) || !has(self.fio.until) || self.rampSeconds == 0",
        message=NO_RAMP,
        field_path=".rampSeconds",
    ),
    Rule(
        rule=f"{_SEARCH} || !(self.fio.pattern in ['trim', 'randtrim'])",
        message=NO_TRIM_SEARCH,
        field_path=".fio.pattern",
    ),
    Rule(rule=f"{_SEARCH} || self.fio.directIo", message=NO_BUFFERED_SEARCH, field_path=".fio.directIo"),
    Rule(rule=f"{_SEARCH} || !has(self.fio.until)", message=NO_UNTIL_SEARCH, field_path=".fio.until"),
    Rule(
        rule=f"{_SEARCH} || !has(self.fio.engine) || !(self.fio.engine in ['psync', 'sync'])",
        message=NO_SYNCHRONOUS_SEARCH,
        field_path=".fio.engine",
    ),
    Rule(
        rule=f"{_OPEN} || !has(self.fio.rateIops)",
        message="must be absent, because line varies it; remove it, or remove line",
        field_path=".fio.rateIops",
    ),
    Rule(
        rule=(
            f"{_OPEN} || (has(self.fio.engine) && self.fio.engine in ['psync', 'sync']) || "
            f"self.fio.ioDepth.all(depth, depth in [2, 4, 8, 16, 32, 64])"
        ),
        message=DEPTH_OF_SEARCH,
        field_path=".fio.ioDepth",
    ),
    Rule(rule=f"{_OPEN} || self.fio.jobs == 1", message=NO_JOBS_OF_RATES, field_path=".fio.jobs"),
    Rule(rule=f"{_OPEN} || self.fio.fsyncEvery == 0", message=NO_SYNC_OF_RATES, field_path=".fio.fsyncEvery"),
    Rule(rule=f"{_CLOSED} || !has(self.fio.rateIops)", message=NO_RATE_OF_DEPTHS, field_path=".fio.rateIops"),
    Rule(rule=f"{_CLOSED} || self.fio.fsyncEvery == 0", message=NO_SYNC_OF_DEPTHS, field_path=".fio.fsyncEvery"),
    Rule(
        rule=f"{_CLOSED} || self.fio.ioDepth == [1]",
        message="must be absent, because line varies it; remove it, or remove line",
        field_path=".fio.ioDepth",
    ),
)

RUN_RULES = (
    Rule(
        rule=(
            f"{NO_VOLUME} || self.storage.volume.sharing == 'Shared' || "
            f"!self.workloads.exists(w, has(w.fio) && ({_ONE_FILE} || has(w.fio.readBack)))"
        ),
        message=(
            "must be Shared, because a workload has files SharedFile or readBack; set it to Shared, or remove these "
            "fields"
        ),
        field_path=".storage.volume.sharing",
    ),
    Rule(
        rule=(
            f"!self.workloads.exists(w, has(w.fio) && {_ONE_FILE}) || self.workloads.all(w, !has(w.fio) || {_ONE_FILE})"
        ),
        message=(
            "cannot have files SharedFile in only some workloads, because clients prefill one kind of files; set it in "
            "all of them, or split the run"
        ),
        field_path=".workloads",
    ),
    Rule(
        rule=(
            "self.workloads.all(w, !has(w.fio) || !has(w.fio.readBack) || "
            "(has(w.clients) ? w.clients.all(clients, clients >= 2) : self.clients.count >= 2))"
        ),
        message=(
            "must have at least 2 clients where readBack is NextClient, because each reads what another one wrote; "
            "raise clients, or remove readBack"
        ),
        field_path=".workloads",
    ),
    Rule(
        rule=(
            f"{NO_VOLUME} || {IS_BLOCK} || "
            "!self.workloads.exists(w, has(w.fio) && w.fio.pattern in ['trim', 'randtrim'])"
        ),
        message="must be Block, because a workload trims; set it to Block, or leave out the workloads that trim",
        field_path=".storage.volume.mode",
    ),
    Rule(
        rule=(
            f"{NO_VOLUME} || self.workloads.all(w, !has(w.fio) || !has(w.fio.engine) || "
            "(w.fio.engine == 'rbd') == (self.storage.volume.access == 'LibRBD'))"
        ),
        message=(
            "must have engine rbd with access LibRBD and cannot have it without; leave engine out, or change "
            "spec.storage.volume.access"
        ),
        field_path=".workloads",
    ),
    Rule(
        rule=f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || w.fio.directIo)",
        message=(
            "must have directIo true with access LibRBD, because images bypass the page cache; librbd's own cache is "
            "spec.storage.volume.rbdCache"
        ),
        field_path=".workloads",
    ),
    Rule(
        rule=(
            f"{_NO_IMAGE} || self.workloads.all(w, !has(w.fio) || "
            "(w.fio.?arrivals.orValue('Even') != 'Poisson' && (!has(w.line) || w.line.vary != 'Rate')))"
        ),
        message=NO_ARRIVALS_OF_IMAGE,
        field_path=".workloads",
    ),
    Rule(
        rule=(
            f"{_NO_IMAGE} || "
            "self.workloads.all(w, !has(w.fio) || w.fio.jobs == 1 || w.fio.pattern in ['read', 'randread'])"
        ),
        message=(
            "cannot have several jobs that write or trim with access LibRBD, because they take the image's lock from "
            "one another; raise ioDepth, or the number of clients"
        ),
        field_path=".workloads",
    ),
)
