#!/bin/sh
# usage: stall.sh POD_UID PATH SECONDS
# Holds back what a pod reads from the device that PATH is on. Runs inside the pod's node.
set -eu
slice=$(echo "$1" | tr - _)
device=$(stat --format %Hd:%Ld "$2")

# LIMIT_V1 LIMIT_V2: bytes per second, for each container of the pod; v1 does not hand limits down.
limit() {
    find /sys/fs/cgroup/blkio -path "*$slice*" -name blkio.throttle.read_bps_device 2> /dev/null |
        while read -r file; do echo "$device $1" > "$file"; done
    find /sys/fs/cgroup -maxdepth 6 -path "*pod$slice.slice/io.max" 2> /dev/null |
        while read -r file; do echo "$device rbps=$2" > "$file"; done
}

trap 'limit 0 max' EXIT
limit 1 1
sleep "$3"
