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
deadline_seconds=1200
case ${1:-} in
    '') name=demo point=demo-random-read-000 ;;
    ceph) name=demo-ceph point=demo-ceph-rbd-000 ;;
    *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
readonly root cluster plimsoll namespace deadline_seconds name point

say() { printf '\n%s\n' "$*"; }

status() { kubectl --namespace "$namespace" get benchmarkrun "$name" --output "jsonpath=$1" 2> /dev/null; }

# Print every change of what the run says it is doing, until it is over and clean.
follow() {
    local said='' now cleaned
    SECONDS=0
    while ((SECONDS < deadline_seconds)); do
        now=$(status '{.status.display.progress} {.status.conditions[?(@.type=="Succeeded")].message}')
        cleaned=$(status '{.status.conditions[?(@.type=="CleanedUp")].status}')
        [[ $now == "$said" ]] || printf '%4d s  %s\n' "$SECONDS" "$now"
        said=$now
        [[ $cleaned != True ]] || return 0
        sleep 1
    done
    say "the run is not over after $deadline_seconds s; look at: kubectl -n $namespace get brun,bres,pods"
    return 1
}

# `osdBench` needs a user that may tell OSDs anything, which is more than the run's own may. Its key stays in the demo's
# namespace, and the user in the demo's Ceph.
administrator_keyring() {
    "$root/e2e/ceph/ceph" admin ceph auth get-or-create client.osd-bench mon 'allow r' osd 'allow *' < /dev/null |
        kubectl create secret generic plimsoll-osd-bench --from-file keyring=/dev/stdin --dry-run=client --output yaml |
        kubectl --namespace "$namespace" apply --filename - > /dev/null
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
follow

say 'kubectl get brun,bres'
kubectl --namespace "$namespace" get benchmarkruns,benchmarkresults
if [[ $name == demo-ceph ]]; then
    say "plimsoll results $namespace/$name"
    "$plimsoll" results "$namespace/$name"
    say "plimsoll layers $namespace/$name"
    "$plimsoll" layers "$namespace/$name"
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

if [[ $(status '{.status.conditions[?(@.type=="Succeeded")].status}') != True ]]; then
    say "the run did not succeed: $(status '{.status.conditions[?(@.type=="Succeeded")].message}')"
    exit 1
fi
