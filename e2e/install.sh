#!/usr/bin/env bash
# Build the images, load them into the cluster of e2e/cluster, and install CRDs and operator there.
#
#   e2e/install.sh
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
eval "$("$cluster" env)"
export DOCKER_BUILDKIT=1
readonly root cluster

say() { printf 'install.sh: %s\n' "$*" >&2; }

build() {
    local target=$1 options=()
    # A machine behind a proxy needs its own certificate authorities in the build; others lose nothing by it.
    [[ ! -e /etc/ssl/certs/ca-certificates.crt ]] || options+=(--secret "id=ca,src=/etc/ssl/certs/ca-certificates.crt")
    say "building plimsoll-$target:e2e"
    "$cluster" docker build --quiet --network host --build-arg "BASE_IMAGE=$base" "${options[@]}" \
        --target "$target" --tag "plimsoll-$target:e2e" "$root" > /dev/null
}

base=$("$cluster" base-image)
build operator
build runner
say "loading the images"
"$cluster" load plimsoll-operator:e2e plimsoll-runner:e2e
say "installing CRDs and operator"
kubectl apply --server-side --force-conflicts -f "$root/crds" > /dev/null
kubectl wait --for=condition=Established --timeout=60s crd/benchmarkruns.plimsoll.dev crd/benchmarkresults.plimsoll.dev > /dev/null
kubectl apply -k "$root/e2e/operator" > /dev/null
kubectl --namespace plimsoll-system rollout restart deployment/plimsoll > /dev/null
kubectl --namespace plimsoll-system rollout status deployment/plimsoll --timeout=180s >&2
