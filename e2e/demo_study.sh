#!/usr/bin/env bash
# Repeats a published study in a real Kubernetes with a real Ceph, from nothing: KIT's layers, clients and replication
# (e2e/studies/kit) as one BenchmarkSuite. Prints the plan, the progress, what became of the study's hypotheses, and the
# shares of the limits beside those that the study published; writes build/kit.html.
#
# The suite takes about 13 minutes, and is removed if it has not ended after 15. While it runs, the OSDs of the test cluster have
# other device classes. Fails if the round was not evaluated; refuted hypotheses and Suspect numbers are what to expect
# where all nodes are one busy machine.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
plimsoll=${PLIMSOLL_VENV:-$root/.venv}/bin/plimsoll
namespace='plimsoll-study'
suite=$root/build/kit.yaml
report=build/kit.html
deadline=15m
readonly root cluster plimsoll namespace suite report deadline

say() { printf '\n%s\n' "$*"; }

ceph() { "$root/e2e/ceph/ceph" admin ceph "$@" < /dev/null; }

# One OSD, and twice as many: pools without a class use all three. The operator knows classes by the labels of Rook's
# Deployments.
assign_classes() {
    ceph osd crush rm-device-class osd.0 osd.1 osd.2
    ceph osd crush set-device-class "$1" osd.0
    ceph osd crush set-device-class "$2" osd.1 osd.2
    kubectl --namespace rook-ceph label --overwrite deployment/rook-ceph-osd-0 "device-class=$1" > /dev/null
    kubectl --namespace rook-ceph label --overwrite deployment/rook-ceph-osd-{1,2} "device-class=$2" > /dev/null
}

# A run that still measures needs the classes: remove it first.
tidy() {
    local status=$?
    ((status == 0)) ||
        kubectl --namespace "$namespace" delete benchmarksuite kit --ignore-not-found --timeout=180s > /dev/null ||
        echo 'demo_study.sh: the suite could not be removed' >&2
    assign_classes ssd ssd || echo 'demo_study.sh: the device classes could not be restored' >&2
    exit "$status"
}

run_of() {
    kubectl --namespace "$namespace" get benchmarkruns --selector "plimsoll.dev/suite=kit,plimsoll.dev/variant=$1" \
        --output 'jsonpath={.items[0].metadata.name}'
}

"$cluster" up
eval "$("$cluster" env)"
"$root/e2e/ceph/ceph" up
"$root/e2e/rook/rook" up
"$root/e2e/install.sh"

# Pods with a block device need more than the profile `restricted` permits.
kubectl get namespace "$namespace" > /dev/null 2>&1 || kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=baseline --overwrite > /dev/null
kubectl --namespace "$namespace" delete benchmarksuite kit --ignore-not-found --timeout=180s > /dev/null
# The block device that an earlier suite had is not free before.
"$cluster" recycle
"$root/e2e/osd_bench.sh" "$namespace"
trap tidy EXIT
trap 'exit 130' INT TERM
assign_classes studies-few studies-more

mkdir -p "$root/build"
kubectl kustomize "$root/e2e/studies/kit" > "$suite"
say 'plimsoll suite plan build/kit.yaml'
"$plimsoll" suite plan "$suite"
say "kubectl -n $namespace apply -f build/kit.yaml"
kubectl --namespace "$namespace" apply --filename "$suite"
begun=$SECONDS
say "kubectl plimsoll suite watch $namespace/kit"
"$plimsoll" suite watch "$namespace/kit" --timeout "$deadline" || {
    status=$?
    kubectl --namespace "$namespace" get benchmarksuites,benchmarkruns,pods >&2
    kubectl --namespace "$namespace" describe benchmarksuite kit | tail -n 40 >&2
    exit "$status"
}
say "The suite took $(((SECONDS - begun) / 60)) min $(((SECONDS - begun) % 60)) s."

layers=(layers "$namespace/$(run_of osds-all)" --device-run "$namespace/$(run_of disk)")
say "kubectl plimsoll ${layers[*]}"
"$plimsoll" "${layers[@]}"
say "kubectl plimsoll suite report $namespace/kit -o $report"
(cd "$root" && "$plimsoll" suite report "$namespace/kit" --output "$report")

cat << HELP

The study says:    docs/studies.md#kit; H1 are ...-scale-with-osds, H2 ...-scale-with-clients, H3 rbd-costs, H4 journal-limits
Explore it:        eval "\$(e2e/cluster/cluster env)"
                   kubectl plimsoll suite results $namespace/kit
Remove the suite:  kubectl delete namespace $namespace
Remove everything: e2e/cluster/cluster down
HELP
