#!/usr/bin/env bash
# Capture what iperf3, ping and netcat really print, as golden files for the parsers' tests. Needs root.
#
#   capture_network.sh <output directory>
#
# Two network namespaces with a link of 200 Mbit/s between them stand for two hosts. Per case of iperf3 and ping:
# <tool>-<version>-<case>.json or .txt (standard output), .exit (exit code) and .times (Unix nanoseconds before the start and
# after the end). Of netcat, which prints nothing: the lines of the agent's meter, with its format repeated here.
set -euo pipefail

(($# == 1)) || { echo "usage: $0 <output directory>" >&2; exit 2; }
mkdir -p "$1"
out=$(realpath "$1")
export LC_ALL=C
readonly port=20545 near=plimsoll-near far=plimsoll-far
readonly here=192.0.2.1 there=192.0.2.2

iperf3_version=$(iperf3 --version | sed -n 's/^iperf \([0-9.]*\).*/\1/p')
ping_version=$(ping -V | sed -n 's/.*iputils \([0-9]*\).*/\1/p')
netcat_version=$(nc.traditional -h 2>&1 | sed -n 's/.*\[v\([0-9.]*\).*/\1/p')

cleanup() {
    local pid
    for pid in $(jobs -p); do kill -KILL "$pid" 2> /dev/null || true; done
    ip netns del $near 2> /dev/null || true
    ip netns del $far 2> /dev/null || true
}
trap cleanup EXIT

ip netns add $near
ip netns add $far
ip -n $near link add link0 type veth peer name link0 netns $far
ip -n $near address add $here/24 dev link0
ip -n $far address add $there/24 dev link0
for space in $near $far; do
    ip -n "$space" link set lo up
    ip -n "$space" link set link0 up
    ip netns exec "$space" sysctl -qw "net.ipv4.ping_group_range=0 2147483647"
done

# limit <rate> <burst> <queue> [<namespace>]: limit what the near end sends, and the far end; or only one of them.
limit() {
    local space
    for space in ${4:-$near $far}; do
        ip netns exec "$space" tc qdisc replace dev link0 root tbf rate "$1" burst "$2" limit "$3"
    done
}

# run <name> <suffix> <command...>: capture a command of the near end; its process is $client.
run() {
    name=$1
    local suffix=$2
    shift 2
    echo "$name" >&2
    began=$(date +%s%N)
    ip netns exec $near "$@" > "$out/$name.$suffix" 2> "$out/$name.stderr" &
    client=$!
}

finish() {
    local status=0
    wait "$client" 2> /dev/null || status=$?
    echo "$began $(date +%s%N)" > "$out/$name.times"
    echo "$status" > "$out/$name.exit"
    [[ -s $out/$name.stderr ]] || rm "$out/$name.stderr"
}

serve() {
    ip netns exec $far iperf3 --server --port=$port --forceflush > "$out/serving" &
    server=$!
    until grep -q "Server listening" "$out/serving"; do sleep 0.05; done
    rm "$out/serving"
}

stop() {
    kill -KILL "$server"
    wait "$server" 2> /dev/null || true
}

# iperf <case> <options...>
iperf() {
    local case=$1
    shift
    run "iperf3-$iperf3_version-$case" json iperf3 --client=$there --port=$port --json --interval=1 \
        --connect-timeout=5000 "$@"
}

limit 200mbit 64kb 256kb
serve
iperf tcp-send --time=3 --omit=1; finish
iperf tcp-receive --time=3 --omit=2 --reverse; finish
iperf tcp-4-streams --time=3 --omit=1 --parallel=4 --window=262144; finish
iperf udp-send --time=3 --omit=1 --parallel=2 --udp --bitrate=10000000 --length=1400; finish
iperf udp-receive --time=3 --omit=1 --udp --bitrate=10000000 --length=1400 --reverse; finish
limit 20mbit 8kb 16kb
iperf udp-lossy --time=3 --omit=1 --udp --bitrate=30000000 --length=1400; finish
limit 200mbit 64kb 256kb
iperf killed --time=30 --omit=1
sleep 2.5
kill -KILL "$client"
finish
stop
serve
iperf server-died --time=5 --omit=1
sleep 3.5
stop
finish
iperf refused --time=3 --omit=1; finish

ping_it() {
    local case=$1
    shift
    run "ping-$ping_version-$case" txt ping -D -n "$@"
}
ping_it good -i0.010 -s56 -w5 $there; finish
ping_it large -i0.050 -s1400 -w4 $there; finish
# Replies are lost, since a sender whose own queue is full would wait.
limit 440kbit 2kb 3kb $far
ping_it losses -i0.010 -s1000 -w5 $there; finish
limit 200mbit 64kb 256kb
ping_it nobody -i0.100 -s56 -w2 192.0.2.9; finish
ping_it went-away -i0.010 -s56 -w5 $there
sleep 2.5
ip -n $far link set link0 down
finish
ip -n $far link set link0 up
until ip netns exec $near ping -c1 -W1 $there > /dev/null; do :; done
ping_it killed -i0.050 -s56 -w30 $there
sleep 2
kill -KILL "$client"
finish

# meter <seconds>: print what the agent prints of the process $client, until it has run that long.
meter() {
    local end=$(($(date +%s%N) + $1 * 1000000000)) read
    while read -r _ read < <(grep '^rchar' "/proc/$client/io" 2> /dev/null); do
        echo "$(date +%s%N) $read"
        (($(date +%s%N) < end)) || break
        sleep 1
    done
}

# netcat <case> <seconds> <seconds that the server lives>
netcat() {
    name=netcat-$netcat_version-$1
    echo "$name" >&2
    ip netns exec $far timeout --signal=KILL "$3" nc.traditional -n -l -p $port < /dev/zero > /dev/null &
    server=$!
    sleep 0.3
    ip netns exec $near nc.traditional -n -w 5 $there $port < /dev/null > /dev/null &
    client=$!
    meter "$2" > "$out/$name.txt"
    kill "$client" 2> /dev/null || true
    wait "$client" "$server" 2> /dev/null || true
}
netcat receive 5 6
netcat server-died 5 3
