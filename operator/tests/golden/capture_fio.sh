#!/usr/bin/env bash
# Capture what a real fio writes, as golden files for the parser's tests.
#
#   capture_fio.sh <fio binary> <output directory>
#
# Per case: fio-<version>-<case>.json (what --output received), .exit (exit code), and the logs
# fio-<version>-<case>_{iops,bw,clat_hist}.<job>.log. A killed fio may leave no document: then there is no .json. Of a case
# `live-...` there is only .stdout, what fio says while it runs. The device cases need root: a loop device and a tmpfs.
# Every run is short and most are rate-limited, to keep the files small.
set -euo pipefail

(($# == 2)) || { echo "usage: $0 <fio binary> <output directory>" >&2; exit 2; }
fio=$(realpath -s "$(command -v "$1")")
mkdir -p "$2"
out=$(realpath "$2")
version=$("$fio" --version)

# A fixed place, because it appears in the documents.
readonly work=/tmp/plimsoll-golden
readonly data=$work/data
export LC_ALL=C

cleanup() {
    [[ -z ${loop:-} ]] || losetup --detach "$loop"
    ! mountpoint --quiet "$work/small" || umount "$work/small"
    rm -rf "$work"
}
trap cleanup EXIT
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# What a measurement always sets.
always=(
    --output-format=json+ --eta=never
    --ioengine=libaio --direct=1 --thread=1 --group_reporting=0 --allow_file_create=0
    --randseed=20240601 --norandommap=1 --random_generator=tausworthe64 --refill_buffers=1 --continue_on_error=none
    --lat_percentiles=1 --clat_percentiles=1 --slat_percentiles=1 --percentile_list=50:90:95:99:99.9:99.99
    --log_avg_msec=1000 --log_hist_msec=1000 --per_job_logs=1
)
timed=(--time_based=1 --runtime=5)

# start <case> <options...>: start fio in the background; its process is $fio_pid.
start() {
    name=$version-$1
    shift
    echo "$name" >&2
    rm -f "$out/$name.json" "$out/$name.exit" "$out/${name}"_*.log
    "$fio" --output="$name.json" --name="${name#"$version-"}" "${always[@]}" \
        --write_iops_log="$name" --write_bw_log="$name" --write_hist_log="$name" "$@" &
    fio_pid=$!
}

finish() {
    local status=0
    wait "$fio_pid" 2> /dev/null || status=$?
    echo "$status" > "$name.exit"
    find . -maxdepth 1 -type f -name "${name}[._]*" -exec cp -t "$out" {} +
}

capture() {
    start "$@"
    finish
}

# live <case> <options...>: what it says while it runs.
live() {
    name=$version-live-$1
    shift
    echo "$name" >&2
    "$fio" --output="$name.json" --name=measure "${always[@]}" --eta=always --eta-interval=2s --log_avg_msec=1000 \
        "$@" > "$out/$name.stdout"
}

echo "$version" > "$out/$version-version.txt"
head -c 64M /dev/urandom > "$data"
sync "$data"
size=(--filename="$data" --size=64M)

capture prefill "${size[@]}" --rw=write --bs=1M --iodepth=8 --end_fsync=1 --rate=20M
capture precondition "${size[@]}" --time_based=1 --runtime=3 --rw=randwrite --bs=64k --iodepth=16 --end_fsync=1 \
    --rate=20M
capture randread-4k-qd16 "${size[@]}" "${timed[@]}" --rw=randread --bs=4k --iodepth=16 --rate_iops=2000
capture randwrite-4k-qd1 "${size[@]}" "${timed[@]}" --rw=randwrite --bs=4k --iodepth=1 --rate_iops=500
capture randrw70-8k "${size[@]}" "${timed[@]}" --rw=randrw --rwmixread=70 --bs=8k --iodepth=8 --rate_iops=700,300
capture write-fsync "${size[@]}" "${timed[@]}" --rw=write --bs=4k --iodepth=1 --fsync=8 --rate_iops=500
capture numjobs2 "${size[@]}" "${timed[@]}" --rw=randread --bs=4k --iodepth=4 --numjobs=2 --rate_iops=800
capture ramp "${size[@]}" --time_based=1 --ramp_time=2 --runtime=4 --rw=randread --bs=4k --iodepth=4 --rate_iops=1000
capture randrw-jobs2-ramp "${size[@]}" --time_based=1 --ramp_time=2 --runtime=5 --rw=randrw --rwmixread=70 --bs=8k \
    --iodepth=4 --numjobs=2 --rate_iops=350,150
# As deep as where old versions logged empty histograms.
capture read-128k-qd256 "${size[@]}" "${timed[@]}" --rw=read --bs=128k --iodepth=256 --rate_iops=1000
# 500 operations at once, then nothing for 2.6 s, and so on.
capture stall "${size[@]}" --time_based=1 --runtime=8 --rw=randread --bs=4k --iodepth=1 \
    --thinktime=2600000 --thinktime_blocks=500
capture status-interval "${size[@]}" --time_based=1 --runtime=4 --status-interval=1 --rw=randread --bs=4k --iodepth=1 \
    --rate_iops=200
# fio remarks that a synchronous engine caps the queue depth, in front of the document.
capture noise "${size[@]}" "${timed[@]}" --ioengine=psync --rw=randread --bs=4k --iodepth=4 --rate_iops=500
capture missing-file --filename="$work/absent/data" --size=64M "${timed[@]}" --rw=randread --bs=4k --iodepth=1

# Gaps between completions: as measurements log them since, of two jobs, and of a process that is stopped.
gaps=(--log_avg_msec=10 --bwavgtime=1000 --iopsavgtime=1000 --ramp_time=2)
with_gaps() {
    local case=$1
    shift
    start "$case" "${size[@]}" "${gaps[@]}" --time_based=1 --write_lat_log="$version-$case" "$@"
}
# Random arrivals, as measurements replay them: 70 % reads, at 1000 operations per second.
trace() {
    awk 'BEGIN {
        srand(1)
        print "fio version 3 iolog\n0 data add\n0 data open"
        for (; time < 16e6; time -= log(1 - rand()) * 1000)
            printf "%d data %s %d 4096\n", time, rand() < 0.7 ? "read" : "write", 4096 * int(rand() * 16384)
        print "16000000 data close"
    }'
}
trace > arrivals
with_gaps replay --runtime=4 --rw=randrw --rwmixread=70 --bs=4k --iodepth=4 --read_iolog=arrivals --replay_redirect="$data"
finish
with_gaps gaps-randrw-jobs2 --runtime=4 --rw=randrw --rwmixread=70 --bs=8k --iodepth=4 --numjobs=2 --rate_iops=350,150
finish
with_gaps freezes --runtime=8 --rw=randread --bs=4k --iodepth=8 --rate_iops=2000
sleep 3
for _ in 1 2 3 4 5 6; do
    sleep 0.7
    kill -STOP "$fio_pid"
    sleep 0.3
    kill -CONT "$fio_pid"
done
finish
with_gaps stopped --runtime=10 --rw=randread --bs=4k --iodepth=8 --rate_iops=2000
sleep 6.2
kill -STOP "$fio_pid"
sleep 2
kill -CONT "$fio_pid"
finish

live mixed-jobs2-ramp "${size[@]}" --time_based=1 --ramp_time=4 --runtime=9 --rw=randrw --rwmixread=70 --bs=8k --iodepth=4 \
    --numjobs=2 --rate_iops=350,150
# Nothing completes for 5 s: lines without rates.
live stall "${size[@]}" --time_based=1 --runtime=13 --rw=randread --bs=4k --iodepth=1 --thinktime=5s \
    --thinktime_blocks=2000
# No storage at all: rates in millions and in GiB.
live fast --ioengine=null --filename=none --size=64M --refill_buffers=0 --time_based=1 --runtime=8 --rw=randwrite --bs=64k \
    --iodepth=16 --numjobs=3

start sigterm "${size[@]}" --time_based=1 --runtime=30 --rw=randread --bs=4k --iodepth=4 --rate_iops=1000
sleep 3.5
kill -TERM "$fio_pid"
finish
start sigkill "${size[@]}" --time_based=1 --runtime=30 --rw=randread --bs=4k --iodepth=4 --rate_iops=1000
sleep 2
kill -KILL "$fio_pid"
finish

# A sparse file promises more than its small file system holds: writing to it ends in ENOSPC.
mkdir "$work/small"
mount -t tmpfs -o size=8M plimsoll-golden "$work/small"
truncate -s 64M "$work/small/data"
capture no-space --filename="$work/small/data" --size=64M --direct=0 --rw=write --bs=64k --iodepth=4 --rate_iops=200
umount "$work/small"

loop=$(losetup --find --show "$data")
ln -s "$loop" "$work/device"
capture trim --filename="$work/device" --size=64M "${timed[@]}" --rw=randtrim --bs=64k --iodepth=4 --rate_iops=500
live trim --filename="$work/device" --size=64M --time_based=1 --runtime=8 --rw=randtrim --bs=64k --iodepth=4 --rate_iops=500
losetup --detach "$loop"
loop=

# A device that shrinks under the run: reads beyond its new end fail with EIO.
loop=$(losetup --find --show "$data")
ln -sf "$loop" "$work/device"
start io-error --filename="$work/device" --size=64M "${timed[@]}" --rw=read --bs=64k --iodepth=4 --rate_iops=200
sleep 2.5
truncate -s 8M "$data"
losetup --set-capacity "$loop"
finish
