#!/usr/bin/env bash
# Build packages of the Go module in the current directory, and report how far it is.
#
#   hack/go-build.sh OUTPUT LDFLAGS PACKAGE...
#
# Go itself is silent while it compiles. This counts what is not in its cache yet, and prints every ten seconds how much of
# that is compiled and roughly how long the rest takes.
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
            printf 'compiled %d of %d packages in %d s, about %d s left and linking\n' "$compiled" "$total" "$spent" "$left"
        fi
    done
}

# A quarter of the garbage collections; two compilers at a time need little memory.
export GOGC=400
printf 'resolving and downloading the modules of %s\n' "$*"
stale=$(go list -deps -trimpath -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@")
go build -v -p 2 -trimpath -ldflags "$ldflags" -o "$output" "$@" 2>&1 | report "$(grep -c . <<< "$stale")"
