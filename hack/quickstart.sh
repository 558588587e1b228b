#!/usr/bin/env bash
# Benchmark a directory of this machine: once as it should be done, once with a deliberate mistake.
#
#   hack/quickstart.sh DIRECTORY     writes data, results and a report there, and replaces what it wrote before
#
# Exits with 0 for all verdicts: on a busy machine the first run is Suspect or Invalid as well. Fails if a run could not
# be measured. PLIMSOLL_FIO names the fio to use.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
plimsoll=${PLIMSOLL_VENV:-$root/.venv}/bin/plimsoll
directory=${1:?usage: hack/quickstart.sh DIRECTORY}
fio=${PLIMSOLL_FIO:-fio}
readonly root plimsoll directory fio
readonly measured_but_invalid=5

say() { printf '\n%s\n' "$*"; }

# Its table is left out: `plimsoll results` prints the same one with the reasons.
run() {
    local sample=manifests/demos/$1.yaml code=0
    say "plimsoll run $sample --directory $directory/data --results $directory/$1"
    "$plimsoll" run "$root/$sample" --fio "$fio" --directory "$directory/data" --results "$directory/$1" > /dev/null ||
        code=$?
    ((code == 0 || code == measured_but_invalid)) || exit "$code"
}

results() {
    say "plimsoll results $directory/$1"
    "$plimsoll" results "$directory/$1"
}

rm -rf "${directory:?}"/{data,quickstart,page-cache,report.html}
mkdir -p "$directory/data"

say '1. Two clients read and write 4 KiB blocks at 200 operations per second each, in 10-second trials (about 80 s).'
run quickstart
results quickstart
say 'Valid: the numbers passed every check. A Suspect or Invalid point has its reason and remedy below the table; most
often another program used the processors or the disk.'

say '2. A deliberate mistake: one client reads a small file through the page cache (about 15 s).'
run page-cache
say "plimsoll report $directory/quickstart $directory/page-cache --html $directory/report.html"
"$plimsoll" report "$directory/quickstart" "$directory/page-cache" --html "$directory/report.html"
say 'This is the speed of memory. Plimsoll reports the verdict, the reason and the remedy:'
results page-cache
