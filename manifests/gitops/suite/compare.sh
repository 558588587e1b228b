#!/usr/bin/env bash
# Apply one occasion of the suite, wait until it has ended, and compare it with an earlier one. For a CI job with a kubeconfig.
#
#   suite/compare.sh BEFORE AFTER [NAMESPACE]        such as: suite/compare.sh before-upgrade after-upgrade
#
# Exits with 0 without a regression, 3 with one, 4 without enough evidence, and 1 if a run did not succeed.
set -euo pipefail

readonly before=$1 after=$2 namespace=${3:-benchmarks}
here=$(realpath "$(dirname "$0")")
readonly here

kubectl apply --kustomize "$here/overlays/$after"
mapfile -t runs < <(kubectl get benchmarkruns --namespace "$namespace" --selector "example.com/occasion=$after" --output name)
[[ ${#runs[@]} -gt 0 ]] || { echo "no runs of $after in $namespace" >&2; exit 1; }

# Every finished run has a completionTime; waiting for its success would not notice a failure.
kubectl wait --namespace "$namespace" --for=jsonpath='{.status.completionTime}' --timeout=8h "${runs[@]}"

worst=0
for run in "${runs[@]}"; do
    name=${run#*/}
    succeeded=$(kubectl get "$run" --namespace "$namespace" \
        --output jsonpath='{.status.conditions[?(@.type=="Succeeded")].status}')
    if [[ $succeeded != True ]]; then
        kubectl get "$run" --namespace "$namespace" --output jsonpath='{.status.display.message}{"\n"}' >&2
        exit 1
    fi
    code=0
    plimsoll compare "$namespace/${name%"-$after"}-$before" "$namespace/$name" || code=$?
    case $code in
        0) ;;
        3) worst=3 ;;
        4) [[ $worst -eq 3 ]] || worst=4 ;;
        *) exit "$code" ;;
    esac
done
exit "$worst"
