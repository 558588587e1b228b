#!/bin/sh
# usage: cut.sh POD_UID --insert|--delete ADDRESS
# Drops what a pod sends to an address, or no longer does. Prints when, in Unix seconds. Runs inside the pod's node.
set -eu
slice=$(echo "$1" | tr - _)
# All processes of a pod have the same network.
process=$(find /sys/fs/cgroup -path "*pod$slice.slice/*" -name cgroup.procs -exec cat {} + 2> /dev/null | head -n 1)
nsenter --target "$process" --net iptables --wait "$2" OUTPUT --destination "$3" --jump DROP
date +%s.%N
