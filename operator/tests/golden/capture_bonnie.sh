#!/usr/bin/env bash
# Records what a real bonnie++ prints: capture_bonnie.sh [path of bonnie++] <directory>. As root, because of the tmpfs.
#
# The options are those of the command that Plimsoll builds. Most runs are stopped for most of the time: then even small
# phases take the half second that bonnie++ needs to time them, with little work. It takes about 8 minutes. A run that is
# stopped cannot have more than 16383 seeks: their numbers would not fit into a pipe.
set -euo pipefail

bonnie=${1:?path of bonnie++} out=${2:?directory for the recordings}
version=$({ "$bonnie" --version 2>&1 || true; } | sed -n 's/^Version: //p')
scratch=$(mktemp -d)
trap 'umount "$scratch"/full "$scratch"/inodes 2>/dev/null || true; rm -rf "$scratch"' EXIT
chmod 755 "$scratch"

# record <case> <seconds of pause between two hundredths of a second, or - > <signal after 1 s, or -> <options ...>
# The signal STOP stops it for 5 s.
record() {
    local name=$out/bonnie-$version-$1 pause=$2 signal=$3 directory=${directory:-$scratch/data}
    shift 3
    mkdir -p "$directory" && chown 65534:65534 "$directory"
    local began code=0
    began=$(date +%s.%N)
    setsid setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$bonnie" -q -d "$directory" -m client-0 -z 1 -r 0 "$@" >"$name.csv" 2>"$name.stderr" &
    local process=$!
    until kill -0 -- "-$process" 2>/dev/null; do sleep 0.01; done
    if [ "$signal" != - ]; then
        sleep 1
        kill "-$signal" -- "-$process"
        if [ "$signal" = STOP ]; then
            sleep 5
            kill -CONT -- "-$process"
        fi
    elif [ "$pause" != - ]; then
        while kill -STOP -- "-$process" 2>/dev/null; do
            sleep "$pause"
            kill -CONT -- "-$process" 2>/dev/null || break
            sleep 0.01
        done
    fi
    wait "$process" 2>/dev/null || code=$?
    # As Python's subprocess reports signals.
    [ "$code" -le 128 ] || code=$((128 - code))
    echo "$code" >"$name.exit"
    echo "$(date +%s.%N) - $began" | bc >"$name.seconds"
    find "$directory" -mindepth 1 -delete
}

"$bonnie" --version >"$out/bonnie-$version-version.stdout" 2>"$out/bonnie-$version-version.stderr" || true

record full 0.2 - -s 128:1024:16000:5 -n 32:0:0:1 -f3
record small-files 0.15 - -s 64:1024:2000:2 -n 4:2048:1024:4 -f
record no-characters 0.15 - -s 64:1024:8192:5 -n 4:0:0:1 -f
record no-files 0.1 - -s 64:1024:8192:5 -n 0 -f3
record direct 0.15 - -s 16:4096:8192:5 -n 0 -f -D -b
record too-fast - - -s 16:8192:8192:5 -n 1:0:0:1 -f
record killed - KILL -s 64:8192:8192:5 -n 1:0:0:1 -f3
record stall - STOP -s 512:1024:2000:2 -n 0 -f
record terminated - TERM -s 64:8192:8192:5 -n 1:0:0:1 -f3

mkdir "$scratch/full" "$scratch/inodes"
mount -t tmpfs -o size=8m tmpfs "$scratch/full"
mount -t tmpfs -o size=64m,nr_inodes=500 tmpfs "$scratch/inodes"
directory=$scratch/full record no-space - - -s 16:8192:8192:5 -n 0 -f
directory=$scratch/full record no-space-for-characters - - -s 16:8192:8192:5 -n 0 -f16
directory=$scratch/inodes record no-inodes - - -s 16:8192:8192:5 -n 1:0:0:1 -f
