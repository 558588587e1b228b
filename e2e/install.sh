#!/usr/bin/env bash
# Build the images, load them into the cluster of e2e/cluster, and install the chart there.
#
#   e2e/install.sh           builds and installs
#   e2e/install.sh images    builds only
#   e2e/install.sh chart     installs the last build
#   e2e/install.sh kube-burner
#                            builds the image of the helper that runs kube-burner, and installs it too
#
# With SOURCE and TAG, `images` builds those of another tree, with another tag than e2e.
set -euo pipefail

root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
eval "$("$cluster" env)"
export DOCKER_BUILDKIT=1
source=${SOURCE:-$root} tag=${TAG:-e2e}
readonly root cluster source tag

say() { printf 'install.sh: %s\n' "$*" >&2; }

build() {
    local target=$1 options=("${@:2}")
    # A machine behind a proxy needs its own certificate authorities in the build.
    [[ ! -e /etc/ssl/certs/ca-certificates.crt ]] || options+=(--secret "id=ca,src=/etc/ssl/certs/ca-certificates.crt")
    say "building plimsoll-$target:$tag"
    "$cluster" docker build --quiet --network host --build-arg "BASE_IMAGE=$base" "${options[@]}" \
        --target "$target" --tag "plimsoll-$target:$tag" "$source" > /dev/null
}

# A new build needs new pods, although the tag is the same.
revision() { "$cluster" docker image inspect --format '{{.Id}}' "plimsoll-$1:e2e"; }

install_chart() {
    say "installing the chart"
    local helm namespace values=(--values "$root/e2e/operator/values.yaml")
    helm=$("$root/hack/tool.sh" helm)
    if kubectl get crd servicemonitors.monitoring.coreos.com > /dev/null 2>&1; then
        values+=(--values "$root/e2e/operator/monitoring.yaml")
    fi
    if [[ ${1:-} == kube-burner ]] || kubectl get namespace plimsoll-kube-burner > /dev/null 2>&1; then
        values+=(--values "$root/e2e/operator/kube-burner.yaml")
    fi
    # The operator's Role for Rook needs a namespace also before e2e/ceph is up, which takes it over.
    for namespace in rook-ceph{,-secondary,-tertiary}; do
        kubectl get namespace "$namespace" > /dev/null 2>&1 && continue
        kubectl create namespace "$namespace" > /dev/null
        kubectl label namespace "$namespace" plimsoll.dev/e2e=place pod-security.kubernetes.io/enforce=privileged > /dev/null
    done
    # Take over objects that e2e/rook or others have applied before.
    "$helm" upgrade --install plimsoll "$root/charts/plimsoll" --namespace plimsoll-system --create-namespace \
        --take-ownership "${values[@]}" --set-string "podAnnotations.plimsoll\.dev/build=$(revision operator)" \
        --set-string "caches.podAnnotations.plimsoll\.dev/build=$(revision runner)" \
        --wait --timeout 180s > /dev/null
    kubectl label namespace plimsoll-system pod-security.kubernetes.io/enforce=restricted --overwrite > /dev/null
}

kube_burner() {
    local program image=plimsoll-kube-burner-program:e2e
    base=$("$cluster" base-image)
    program=$("$root/hack/tool.sh" kube-burner)
    # In the place of the public image, which has the program at the same path.
    tar --create --directory "$(dirname "$program")" --transform 's,^,bin/,' "$(basename "$program")" |
        "$cluster" docker import - "$image" > /dev/null
    build kube-burner --build-arg "KUBE_BURNER_IMAGE=$image"
    "$cluster" load plimsoll-kube-burner:e2e
}

images() {
    base=$("$cluster" base-image)
    build operator
    build runner
    say "loading the images"
    "$cluster" load "plimsoll-operator:$tag" "plimsoll-runner:$tag"
}

case ${1:-} in
    '') images; install_chart ;;
    images) images ;;
    chart) install_chart ;;
    kube-burner) kube_burner; install_chart kube-burner ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
