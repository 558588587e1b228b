#!/usr/bin/env bash
# usage: e2e/osd_bench.sh NAMESPACE
#
# Lets the runs of a namespace use `osdBench`, which needs a user with more rights on OSDs than a run's own. Its
# key remains in the namespace, and the user in the Ceph of e2e/ceph. It needs the environment of `e2e/cluster/cluster env`.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
namespace=${1:?the namespace is missing}
readonly root namespace

"$root/e2e/ceph/ceph" admin ceph auth get-or-create client.osd-bench mon 'profile simple-rados-client' osd 'allow *' < /dev/null |
    kubectl create secret generic plimsoll-osd-bench --from-file keyring=/dev/stdin --dry-run=client --output yaml |
    kubectl annotate --local --filename - plimsoll.dev/allow-benchmarks=true --output yaml |
    kubectl --namespace "$namespace" apply --filename - > /dev/null
kubectl --namespace "$namespace" apply --kustomize "$root/manifests/ceph" > /dev/null
