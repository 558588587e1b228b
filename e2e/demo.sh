#!/usr/bin/env bash
# Runs in a real Kubernetes, from nothing: creates the cluster, installs Plimsoll, and runs
#
#   e2e/demo.sh         manifests/demos/quickstart.yaml on local volumes, then page-cache.yaml, a deliberate mistake
#   e2e/demo.sh ceph    manifests/demos/demo-ceph.yaml and demo-cephfs.yaml, on a real Ceph in that cluster, with
#                       stand-ins for Rook and Ceph's CSI drivers
#   e2e/demo.sh layers  manifests/demos/bottom-up.yaml on that Ceph, from the network to a file system, after
#                       demo-device.yaml on a loop device on this machine
#   e2e/demo.sh line    manifests/demos/demo-line.yaml on that Ceph twice, under two names, and compares the lines
#
# Fails if a run does not succeed; one whose numbers are Suspect does, which is what to expect where all nodes are one
# busy machine.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
plimsoll=${PLIMSOLL_VENV:-$root/.venv}/bin/plimsoll
namespace='plimsoll-demo'
case ${1:-} in
    '') name=demo runs=(quickstart page-cache) point=quickstart-random-read-000 ;;
    ceph) name=demo-ceph runs=(demo-ceph demo-cephfs) point=demo-ceph-rbd-000 ;;
    layers) name=bottom-up runs=(bottom-up) point=bottom-up-rados-000 ;;
    line) name=demo-line runs=(demo-line demo-line-again) point=demo-line-random-read-000 ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
report=build/$name.html
readonly root cluster plimsoll namespace name runs point report

say() { printf '\n%s\n' "$*"; }

# The OSDs of the test cluster have files on the same disk.
measure_device() (
    image=$root/build/device.img
    mkdir -p "$root/build"
    truncate --size 1G "$image"
    device=$(losetup --find --show --direct-io=on "$image")
    trap 'losetup --detach "$device"; rm -f "$image"' EXIT
    rm -rf "$root/build/demo-device"
    say "plimsoll run manifests/demos/demo-device.yaml --device $device --destroy-data"
    "$plimsoll" run "$root/manifests/demos/demo-device.yaml" --device "$device" --destroy-data \
        --fio "$("$root/hack/fio.sh")" --results "$root/build/demo-device"
)

outcome=0
measure() {
    local sample=${1%-again}
    say "kubectl -n $namespace apply -f manifests/demos/$sample.yaml"
    sed "s/^  name: $sample\$/  name: $1/" "$root/manifests/demos/$sample.yaml" |
        kubectl --namespace "$namespace" apply --filename -
    say "kubectl plimsoll watch $namespace/$1"
    "$plimsoll" watch "$namespace/$1" --timeout 20m || outcome=$?
}

"$cluster" up
eval "$("$cluster" env)"
if [[ $name != demo ]]; then
    "$root/e2e/ceph/ceph" up
    "$root/e2e/rook/rook" up
    "$root/e2e/csi/csi" images
    "$root/e2e/csi/csi" up
fi
"$root/e2e/install.sh"

kubectl get namespace "$namespace" > /dev/null 2>&1 || kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted --overwrite > /dev/null
kubectl --namespace "$namespace" delete benchmarkrun "${runs[@]}" --ignore-not-found --timeout=180s > /dev/null
[[ $name == demo || $name == demo-line ]] || "$root/e2e/osd_bench.sh" "$namespace"
[[ $name != bottom-up ]] || measure_device
for run in "${runs[@]}"; do
    [[ $run != page-cache ]] ||
        say 'Now a deliberate mistake: one client reads a small file through the page cache, so it measures memory.'
    measure "$run"
done

say "kubectl -n $namespace get brun,bres"
kubectl --namespace "$namespace" get benchmarkruns,benchmarkresults
if [[ $name == demo-line ]]; then
    say "kubectl plimsoll results ${runs[*]/#/$namespace/}"
    "$plimsoll" results "${runs[@]/#/$namespace/}"
    say "kubectl plimsoll compare ${runs[*]/#/$namespace/}"
    "$plimsoll" compare "${runs[@]/#/$namespace/}" || (($? == 4)) # which says that the intervals are too wide
elif [[ $name != demo ]]; then
    layers=(layers "$namespace/$name")
    [[ $name != bottom-up ]] || layers+=(--device-run build/demo-device)
    say "kubectl plimsoll ${layers[*]}"
    (cd "$root" && "$plimsoll" "${layers[@]}")
fi
if ((outcome == 0)); then
    say "kubectl plimsoll report ${runs[*]/#/$namespace/} --html $report"
    mkdir -p "$root/build"
    cd "$root"
    "$plimsoll" report "${runs[@]/#/$namespace/}" --html "$report"
fi

cat << HELP

Explore it:        eval "\$(e2e/cluster/cluster env)"
                   kubectl -n $namespace describe brun ${runs[0]}
                   kubectl -n $namespace get bres $point -o yaml
                   kubectl explain benchmarkrun.spec
Remove the run:    kubectl delete namespace $namespace
HELP
[[ $name == demo ]] || cat << HELP
Look at Ceph:      e2e/ceph/ceph status; e2e/ceph/ceph admin ceph osd df; e2e/rook/rook status
Remove Ceph:       e2e/ceph/ceph down
HELP
cat << HELP
Remove everything: e2e/cluster/cluster down
HELP

exit "$outcome"
