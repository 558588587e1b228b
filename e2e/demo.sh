#!/usr/bin/env bash
# A BenchmarkRun in a real Kubernetes, from nothing: makes the cluster, installs Plimsoll, and runs
#
#   e2e/demo.sh         manifests/samples/demo.yaml, on local volumes
#   e2e/demo.sh ceph    manifests/samples/demo-ceph.yaml, on a real Ceph in that cluster, with a stand-in for Rook
#
# Fails if the run does not succeed; a Suspect one does, which is what to expect where all nodes are one machine.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
plimsoll=${PLIMSOLL_VENV:-$root/.venv}/bin/plimsoll
namespace='plimsoll-demo'
case ${1:-} in
    '') name=demo point=demo-random-read-000 ;;
    ceph) name=demo-ceph point=demo-ceph-rbd-000 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
report=build/$name.html
readonly root cluster plimsoll namespace name point report

say() { printf '\n%s\n' "$*"; }

# `osdBench` needs a user that may tell OSDs anything, which is more than the run's own may. Its key stays in the demo's
# namespace, and the user in the demo's Ceph.
administrator_keyring() {
    "$root/e2e/ceph/ceph" admin ceph auth get-or-create client.osd-bench mon 'allow r' osd 'allow *' < /dev/null |
        kubectl create secret generic plimsoll-osd-bench --from-file keyring=/dev/stdin --dry-run=client --output yaml |
        kubectl annotate --local --filename - plimsoll.dev/allow-benchmarks=true --output yaml |
        kubectl --namespace "$namespace" apply --filename - > /dev/null
    kubectl --namespace "$namespace" apply --kustomize "$root/manifests/ceph" > /dev/null
}

"$cluster" up
eval "$("$cluster" env)"
if [[ $name == demo-ceph ]]; then
    "$root/e2e/ceph/ceph" up
    "$root/e2e/rook/rook" up
fi
"$root/e2e/install.sh"

kubectl get namespace "$namespace" > /dev/null 2>&1 || kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted --overwrite > /dev/null
kubectl --namespace "$namespace" delete benchmarkrun "$name" --ignore-not-found --timeout=180s > /dev/null
[[ $name != demo-ceph ]] || administrator_keyring
say "kubectl -n $namespace apply -f manifests/samples/$name.yaml"
kubectl --namespace "$namespace" apply --filename "$root/manifests/samples/$name.yaml"
say "kubectl plimsoll watch $namespace/$name"
outcome=0
"$plimsoll" watch "$namespace/$name" --timeout 20m || outcome=$?

say 'kubectl get brun,bres'
kubectl --namespace "$namespace" get benchmarkruns,benchmarkresults
if [[ $name == demo-ceph ]]; then
    say "kubectl plimsoll layers $namespace/$name"
    "$plimsoll" layers "$namespace/$name"
fi
if ((outcome == 0)); then
    say "kubectl plimsoll report $namespace/$name -o $report"
    mkdir -p "$root/build"
    cd "$root"
    "$plimsoll" report "$namespace/$name" --output "$report"
fi

cat << HELP

Explore it:        eval "\$(e2e/cluster/cluster env)"
                   kubectl -n $namespace describe brun $name
                   kubectl -n $namespace get bres $point -o yaml
                   kubectl explain benchmarkrun.spec
Remove the run:    kubectl delete namespace $namespace
HELP
[[ $name != demo-ceph ]] || cat << HELP
Look at Ceph:      e2e/ceph/ceph status; e2e/ceph/ceph admin ceph osd df; e2e/rook/rook status
Remove Ceph:       e2e/ceph/ceph down
HELP
cat << HELP
Remove everything: e2e/cluster/cluster down
HELP

exit "$outcome"
