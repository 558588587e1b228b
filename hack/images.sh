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
#   BASE_IMAGE    the Debian image to build on, with Ceph 20.2.4 or later; the Dockerfile's if absent
#   KUBE_BURNER=1 build also the image of the helper that runs kube-burner
#
# The values name pushed images by their digests, and others by their tag.
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

# NAME: push an image, and print its digest.
push() {
    local digest
    say "pushing $prefix-$1:$tag"
    digest=$(docker push "$prefix-$1:$tag" | tee >(cat >&2) | sed -n 's/^.*digest: \(sha256:[0-9a-f]\{64\}\) .*$/\1/p') || exit
    [[ -n $digest ]] || die "docker does not say what the digest of $prefix-$1:$tag is"
    echo "$digest"
}

# NAME INDENT: the lines of the values that select an image.
selected() {
    printf '%srepository: %s\n' "$2" "$prefix-$1"
    if [[ $push == 1 ]]; then printf '%sdigest: "%s"\n' "$2" "${digests[$1]}"; else printf '%stag: "%s"\n' "$2" "$tag"; fi
}

[[ -z $push || $push == [01] ]] || die "PUSH=$push is not understood: set PUSH=1 to push, or leave it out"
[[ $push != 1 || -n ${REGISTRY:-} ]] || die "PUSH=1 needs a registry: set REGISTRY, such as REGISTRY=registry.example.org/team"
command -v docker > /dev/null || die "docker is not on PATH: install Docker with BuildKit (Debian: docker.io and docker-buildx)"

images=(operator runner ${KUBE_BURNER:+kube-burner})
declare -A digests
for name in "${images[@]}"; do
    build "$name"
done
if [[ $push == 1 ]]; then
    for name in "${images[@]}"; do
        digests[$name]=$(push "$name")
    done
fi

say 'Helm values for these images; save them as values.yaml, add watchNamespaces, and install with'
say '  helm upgrade --install plimsoll charts/plimsoll --namespace plimsoll-system --create-namespace --values values.yaml'
echo "image:"
selected operator '  '
printf 'runner:\n  image:\n'
selected runner '    '
[[ -z ${KUBE_BURNER:-} ]] || { printf 'kubeBurner:\n  image:\n'; selected kube-burner '    '; }
