#!/bin/sh
# usage: throttle.sh POD_UID PATH OPERATIONS
# Limits a pod's reads from the device of PATH to OPERATIONS per second until the pod is gone. Runs inside the pod's node.
set -eu
slice=$(echo "$1" | tr - _)
device=$(stat --format %Hd:%Ld "$2")

# Prints the files that limit each container of the pod; cgroup v1 does not inherit limits.
limits() {
    # find fails if another pod's group vanishes meanwhile; its output so far is right.
    find /sys/fs/cgroup/blkio -path "*$slice*" -name blkio.throttle.read_iops_device 2> /dev/null || :
    find /sys/fs/cgroup -maxdepth 6 -path "*pod$slice.slice/io.max" 2> /dev/null || :
}

# A container that starts later gets the limit too.
found=$(limits)
while [ "$found" ]; do
    for file in $found; do
        # The file may vanish with its container.
        case $file in
            */io.max) echo "$device riops=$3" > "$file" || continue ;;
            *) echo "$device $3" > "$file" || continue ;;
        esac
    done
    sleep 0.3
    found=$(limits)
done
