#!/usr/bin/env bash
# Repeats a published study in a real Kubernetes with a real Ceph, from nothing: KIT's layers, clients and replication
# (e2e/studies/demo) as one BenchmarkSuite. Prints the plan, the progress, the verdicts on the study's hypotheses, and the
# shares of the limits next to the published shares; writes build/kit.html.
#
# The suite takes about 13 minutes, and is removed if it has not ended after 15.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
plimsoll=${PLIMSOLL_VENV:-$root/.venv}/bin/plimsoll
namespace='plimsoll-study-demo'
readonly root plimsoll namespace

say() { printf '\n%s\n' "$*"; }

run_of() {
    kubectl --namespace "$namespace" get benchmarkruns --selector "plimsoll.dev/suite=kit,plimsoll.dev/variant=$1" \
        --output 'jsonpath={.items[0].metadata.name}'
}

"$root/e2e/cluster/cluster" up
eval "$("$root/e2e/cluster/cluster" env)"
"$root/e2e/ceph/ceph" up
"$root/e2e/rook/rook" up
"$root/e2e/install.sh"
mkdir -p "$root/build"
kubectl kustomize "$root/e2e/studies/demo" > "$root/build/kit.yaml"
say 'plimsoll plan build/kit.yaml'
"$plimsoll" plan "$root/build/kit.yaml"
PLIMSOLL_STUDY_MINUTES=15 "$root/e2e/studies/measure" demo

layers=(layers "$namespace/$(run_of osds-all)" --device-run "$namespace/$(run_of disk)")
say "kubectl plimsoll ${layers[*]}"
"$plimsoll" "${layers[@]}"

cat << HELP

The study says:    docs/how-to/studies.md#kit; H1 are ...-scale-with-osds, H2 ...-scale-with-clients, H3 rbd-costs; H4 is about a
                   journal, which BlueStore does not have: osd-below-half-of-its-disk says nothing about one
Explore it:        eval "\$(e2e/cluster/cluster env)"
                   kubectl plimsoll results bsuite/$namespace/kit
Remove the suite:  kubectl delete namespace $namespace
Remove everything: e2e/cluster/cluster down
HELP
