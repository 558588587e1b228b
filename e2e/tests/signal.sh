#!/bin/sh
# usage: signal.sh POD_UID SIGNAL
# Sends a signal to the processes of a pod, except the one that holds its namespaces. Prints when,
# in Unix seconds. Runs inside the pod's node.
set -eu
slice=$(echo "$1" | tr - _)
# In cgroup v1, each controller lists the same processes.
processes=$(find /sys/fs/cgroup -path "*pod$slice.slice/*" -name cgroup.procs -exec cat {} + 2> /dev/null | sort -u)
for process in $processes; do
    [ "$(cat "/proc/$process/comm")" = pause ] || kill -s "$2" "$process"
done
date +%s.%N
