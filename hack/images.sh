#!/usr/bin/env bash
# Build the images of Plimsoll, and print the Helm values that select them.
#
#   hack/images.sh      as `make images` does
#
# Environment:
#   REGISTRY      where the images belong, such as registry.example.org/team; without it they have a plain name,
#                 for the local Docker or `kind load docker-image`
#   TAG           their tag; the version of the chart if absent
#   PUSH=1        push them to REGISTRY
#   BASE_IMAGE    the Debian image to build on, with Ceph 20.2.4 or later; that of the Dockerfile if absent
#   KUBE_BURNER=1 build also the image of the helper that runs kube-burner
#
# Only the values go to standard output; progress and errors go to standard error.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
tag=${TAG:-$(sed -n 's/^appVersion: "\(.*\)"$/\1/p' "$root/charts/plimsoll/Chart.yaml")}
prefix=${REGISTRY:+${REGISTRY%/}/}plimsoll
push=${PUSH:-}
readonly root tag prefix push
readonly authorities=/etc/ssl/certs/ca-certificates.crt
export DOCKER_BUILDKIT=1

say() { printf 'images.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

build() {
    local image=$prefix-$1:$tag options=()
    # A machine behind a proxy needs its own certificate authorities in the build; others lose nothing by it.
    [[ ! -e $authorities ]] || options+=(--secret "id=ca,src=$authorities")
    [[ -z ${BASE_IMAGE:-} ]] || options+=(--build-arg "BASE_IMAGE=$BASE_IMAGE")
    say "building $image"
    docker build "${options[@]}" --target "$1" --tag "$image" "$root" >&2
}

[[ -z $push || $push == [01] ]] || die "PUSH=$push is not understood: set PUSH=1 to push, or leave it out"
[[ $push != 1 || -n ${REGISTRY:-} ]] || die "PUSH=1 needs a registry: set REGISTRY, such as REGISTRY=registry.example.org/team"
command -v docker > /dev/null || die "docker is not on PATH: install Docker with BuildKit (Debian: docker.io and docker-buildx)"

build operator
build runner
[[ -z ${KUBE_BURNER:-} ]] || build kube-burner
if [[ $push == 1 ]]; then
    for name in operator runner ${KUBE_BURNER:+kube-burner}; do
        say "pushing $prefix-$name:$tag"
        docker push "$prefix-$name:$tag" >&2
    done
fi

say 'Helm values for these images; save them as values.yaml and install with'
say '  helm upgrade --install plimsoll charts/plimsoll --namespace plimsoll-system --create-namespace --values values.yaml'
cat << VALUES
image:
  repository: $prefix-operator
  tag: "$tag"
runner:
  image:
    repository: $prefix-runner
    tag: "$tag"
VALUES
[[ -z ${KUBE_BURNER:-} ]] || cat << VALUES
kubeBurner:
  image:
    repository: $prefix-kube-burner
    tag: "$tag"
VALUES
