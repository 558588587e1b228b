#!/usr/bin/env bash
# Capture what real dd and ioping print, as golden files for the parsers' tests.
#
#   capture_disk_tools.sh <output directory>
#
# Per case: dd-<version>-<case>.stderr and ioping-<version>-<case>.txt (standard output) and .stderr, each with .exit. All are on
# a data set of 8 MiB from 1 MiB on. As root: the cases that fail need a loop device and a small file system.
set -euo pipefail

(($# == 1)) || { echo "usage: $0 <output directory>" >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
export LC_ALL=C
dd=dd-$(dd --version | awk 'NR == 1 { print $NF }')
ioping=ioping-$(ioping -v | awk '{ print $NF }')

# A fixed place, because it appears in the messages.
readonly work=/tmp/plimsoll-golden
readonly data=$work/data
cleanup() {
    [[ -z ${loop:-} ]] || losetup --detach "$loop"
    ! mountpoint --quiet "$work/small" || umount "$work/small"
    rm -rf "$work"
}
trap cleanup EXIT
rm -rf "$work"
mkdir -p "$work/small"
cd "$work"
dd if=/dev/urandom of="$data" bs=1M count=9 status=none

# capture <stem> <command...>: run it, and keep what it prints and its exit code.
capture() {
    local stem=$out/$1 status=0
    shift
    "$@" > stdout 2> stderr || status=$?
    keep "$stem" "$status"
}

# A program that has printed nothing on a stream leaves no file of it.
keep() {
    rm -f "$1".{txt,stderr}
    [[ ! -s stdout ]] || cp stdout "$1.txt"
    [[ ! -s stderr ]] || cp stderr "$1.stderr"
    echo "$2" > "$1.exit"
}

# stopped <stem> <seconds> <signal> <command...>: send it a signal after some seconds; CONT after STOP and `pause` more.
pause=2
stopped() {
    local stem=$out/$1 seconds=$2 signal=$3 status=0 pid
    shift 3
    "$@" > stdout 2> stderr &
    pid=$!
    sleep "$seconds"
    kill "-$signal" "$pid"
    if [[ $signal == STOP ]]; then
        sleep "$pause"
        kill -CONT "$pid"
    fi
    wait "$pid" 2> /dev/null || status=$?
    keep "$stem" "$status"
}

read_data=("if=$data" skip=1048576 "iflag=skip_bytes,direct" of=/dev/null status=progress)
write_data=(if=/dev/zero "of=$data" seek=1048576 "oflag=seek_bytes,direct" "conv=notrunc,nocreat" status=progress)
endless=(dd bs=512 count=1000000000 if=/dev/zero of=/dev/null status=progress)

capture "$dd-read" dd bs=65536 count=128 "${read_data[@]}"
capture "$dd-write" dd bs=65536 count=128 "${write_data[@]}"
capture "$dd-write-fdatasync" dd bs=65536 count=128 if=/dev/zero "of=$data" seek=1048576 oflag=seek_bytes \
    conv=notrunc,nocreat,fdatasync status=progress
capture "$dd-copy" dd bs=65536 count=64 "if=$data" skip=1048576 iflag=skip_bytes,direct "of=$data" seek=5242880 \
    oflag=seek_bytes,direct conv=notrunc,nocreat status=progress
capture "$dd-cached-read" dd bs=65536 count=128 "if=$data" skip=1048576 iflag=skip_bytes of=/dev/null status=progress
capture "$dd-cached-write" dd bs=65536 count=128 if=/dev/zero "of=$data" seek=1048576 oflag=seek_bytes \
    conv=notrunc,nocreat status=progress
capture "$dd-missing-file" dd bs=65536 count=128 "if=$work/absent" skip=1048576 iflag=skip_bytes,direct of=/dev/null \
    status=progress

# The file ends within the tenth block, so that only a part of it is read.
head --bytes=600000 "$data" > short
capture "$dd-partial" dd bs=65536 count=128 "if=$work/short" skip=0 iflag=skip_bytes,direct of=/dev/null status=progress

# Small blocks take long, on a disk that is not memory: long enough to be interrupted, or to be a measurement.
capture "$dd-interrupted" timeout --foreground --preserve-status --signal=INT 2 dd bs=512 count=16384 "${read_data[@]}"
dd if=/dev/urandom of=large bs=1M count=129 status=none
capture "$dd-slow-read" dd bs=512 count=262144 "if=$work/large" "${read_data[@]:1}"
pause=4 stopped "$dd-stall" 2.3 STOP dd bs=512 count=262144 "if=$work/large" "${read_data[@]:1}"

# A summary in between, by SIGUSR1, and one at the end, by SIGINT; timeout does not pass the former on.
"${endless[@]}" > stdout 2> stderr &
pid=$!
sleep 1.5
kill -USR1 "$pid"
sleep 1
kill -TERM "$pid"
wait "$pid" 2> /dev/null || status=$?
keep "$out/$dd-usr1-sigterm" "${status:-0}"
stopped "$dd-sigkill" 1.5 KILL "${endless[@]}"
stopped "$dd-sigterm" 1.5 TERM "${endless[@]}"

mount -t tmpfs -o size=32m tmpfs small
cp "$data" small/disk
capture "$dd-no-space" dd bs=1048576 count=64 if=/dev/zero "of=$work/small/file" seek=0 oflag=seek_bytes conv=notrunc
rm small/file

# A disk in memory, whose latency does not depend on what the machine does meanwhile.
loop=$(losetup --find --show small/disk)
ping=(ioping -q -B -p1 -a1 -c900001 -s4096 -S8388608 -o1048576 -C)
capture "$ioping-read" "${ping[@]}" -w5s -i2ms -D -e7 "$loop"
capture "$ioping-write" "${ping[@]}" -w5s -i2ms -D -WWW -e7 "$loop"
capture "$ioping-back-to-back" "${ping[@]}" -w0.05s -i0ms -D -e7 "$loop"
capture "$ioping-interval" "${ping[@]}" -w4s -i200ms -D -e7 "$loop"
capture "$ioping-cached" "${ping[@]}" -w5s -i2ms -e7 "$loop"
capture "$ioping-missing-file" "${ping[@]}" -w3s -i5ms -D -e7 "$work/absent"
capture "$ioping-too-small" "${ping[@]}" -w3s -i5ms -D -e7 "$work/short"
stopped "$ioping-stall" 2.5 STOP "${ping[@]}" -w7s -i2ms -D -e7 "$loop"
stopped "$ioping-sigterm" 1 TERM "${ping[@]}" -w4s -i2ms -D -e7 "$loop"
stopped "$ioping-sigkill" 1 KILL "${ping[@]}" -w4s -i2ms -D -e7 "$loop"

# A device whose backing file is cut short answers with I/O errors behind the cut.
truncate --size=4M small/disk
capture "$dd-io-error" dd bs=65536 count=128 "if=$loop" skip=1048576 iflag=skip_bytes,direct of=/dev/null status=progress
capture "$ioping-io-error" "${ping[@]}" -w3s -i5ms -D -e7 "$loop"
