#!/usr/bin/env bash
# Build packages of the Go module in the current directory, and report how far it is.
#
#   hack/go-build.sh OUTPUT LDFLAGS PACKAGE...
#
# Go itself is silent while it compiles. This prints every ten seconds how many packages are compiled and roughly how long the
# rest takes: less if its cache has some of them. To find out which it has, Go would read all of their sources once more.
set -euo pipefail

output=$1 ldflags="-s -w $2"
shift 2
readonly output ldflags REPORT_SECONDS=10

# TOTAL: replace the import paths that `go build -v` prints by a line every few seconds.
report() {
    local total=$1 line compiled=0 begin=$SECONDS next=$((SECONDS + REPORT_SECONDS)) spent left
    while IFS= read -r line; do
        if [[ $line == *[[:space:]]* ]]; then
            printf '%s\n' "$line"
            continue
        fi
        compiled=$((compiled + 1)) spent=$((SECONDS - begin))
        if ((compiled == total)); then
            printf 'compiled all %d packages in %d s, linking\n' "$total" "$spent"
        elif ((SECONDS >= next)); then
            next=$((SECONDS + REPORT_SECONDS)) left=$((spent * (total - compiled) / compiled))
            printf 'compiled %d of at most %d packages in %d s, at most %d s left and linking\n' "$compiled" "$total" "$spent" "$left"
        fi
    done
}

# A quarter of the garbage collections; two compilers at a time need little memory.
export GOGC=400
printf 'resolving and downloading the modules of %s\n' "$*"
packages=$(go list -deps "$@" | wc -l)
# Debugging information is an eighth of the compilers' work and inlining a quarter; these programs need neither.
go build -v -p 2 -trimpath -gcflags='all=-dwarf=false -l' -ldflags "$ldflags" -o "$output" "$@" 2>&1 | report "$packages"
