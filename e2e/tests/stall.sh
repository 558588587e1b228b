#!/bin/sh
# usage: stall.sh POD_UID PATH SECONDS [FREE_SECONDS]
# Blocks a pod's reads from the device of PATH for SECONDS; with FREE_SECONDS repeatedly, with pauses of that length,
# until the pod is gone. Runs inside the pod's node.
set -eu
slice=$(echo "$1" | tr - _)
device=$(stat --format %Hd:%Ld "$2")

# LIMIT_V1 LIMIT_V2: bytes per second, for each container of the pod; cgroup v1 does not inherit limits.
limit() {
    # find fails if another pod's group vanishes meanwhile; its output so far is right.
    found=$(
        find /sys/fs/cgroup/blkio -path "*$slice*" -name blkio.throttle.read_bps_device 2> /dev/null || :
        find /sys/fs/cgroup -maxdepth 6 -path "*pod$slice.slice/io.max" 2> /dev/null || :
    )
    for file in $found; do
        # The file may vanish with its container.
        case $file in
            */io.max) echo "$device rbps=$2" > "$file" || continue ;;
            *) echo "$device $1" > "$file" || continue ;;
        esac
    done
}

trap 'limit 0 max' EXIT
limit 1 1
sleep "$3"
while [ "${4:-}" ] && [ "$found" ]; do
    limit 0 max
    sleep "$4"
    limit 1 1
    sleep "$3"
done
