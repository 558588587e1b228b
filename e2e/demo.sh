#!/usr/bin/env bash
# A BenchmarkRun in a real Kubernetes, from nothing: makes the cluster, installs Plimsoll, runs manifests/samples/demo.yaml.
#
#   e2e/demo.sh
#
# Fails if the run does not succeed; a Suspect one does, which is what to expect where all nodes are one machine.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
namespace=plimsoll-demo
deadline_seconds=900
readonly root cluster namespace deadline_seconds

say() { printf '\n%s\n' "$*"; }

status() { kubectl --namespace "$namespace" get benchmarkrun demo --output "jsonpath=$1" 2> /dev/null; }

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

"$cluster" up
eval "$("$cluster" env)"
"$root/e2e/install.sh"

kubectl get namespace "$namespace" > /dev/null 2>&1 || kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted --overwrite > /dev/null
kubectl --namespace "$namespace" delete benchmarkrun demo --ignore-not-found --timeout=120s > /dev/null
say "kubectl -n $namespace apply -f manifests/samples/demo.yaml"
kubectl --namespace "$namespace" apply --filename "$root/manifests/samples/demo.yaml"
follow

say 'kubectl get brun,bres'
kubectl --namespace "$namespace" get benchmarkruns,benchmarkresults

cat << HELP

Explore it:        eval "\$(e2e/cluster/cluster env)"
                   kubectl -n $namespace describe brun demo
                   kubectl -n $namespace get bres demo-random-read-000 -o yaml
                   kubectl explain benchmarkrun.spec
Remove the run:    kubectl delete namespace $namespace
Remove everything: e2e/cluster/cluster down
HELP

if [[ $(status '{.status.conditions[?(@.type=="Succeeded")].status}') != True ]]; then
    say "the run did not succeed: $(status '{.status.conditions[?(@.type=="Succeeded")].message}')"
    exit 1
fi
