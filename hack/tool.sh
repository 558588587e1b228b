#!/usr/bin/env bash
# Print the path of a program that tests need and that users of Plimsoll have from elsewhere.
#
#   hack/tool.sh NAME         actionlint, helm, kstatus, promtool, prometheus-operator, prometheus-config-reloader, csi-provisioner,
#                             kube-burner, source-controller and kustomize-controller: of Flux, with the definitions of their
#                             kinds beside them in crds/; csi-driver: that of e2e/csi; kube-apiserver-oldest, kube-apiserver-newest:
#                             of the versions of Kubernetes that e2e/cluster/versions.sh names; or
#                             prometheus-operator-crds: a directory with the definitions of that operator's kinds
#
# It is made once and kept in ${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}/tools, by name and version: Go programs from their
# modules, promtool with its Prometheus from the distribution's package, which is unpacked and not installed.
# Only the path goes to standard output; progress and errors go to standard error.
set -euo pipefail

readonly ACTIONLINT_VERSION=v1.7.12 HELM_VERSION=v3.22.0 PROMETHEUS_OPERATOR_VERSION=v0.85.0 KSTATUS_VERSION=v0.37.2
readonly KUBE_BURNER_VERSION=v2.7.3 KUBE_BURNER_KUBERNETES_VERSION=v0.34.3
readonly KUBE_BURNER_OPENAPI_VERSION=v0.0.0-20250710124328-f3f2b991d03b
readonly FLUX_VERSION=v1.9.1
readonly CSI_PROVISIONER_VERSION=v5.1.0 CSI_SPEC_VERSION=v1.9.0 KUBELET_VERSION=v0.34.4
here=$(realpath "$(dirname "$0")")
# shellcheck source=e2e/cluster/versions.sh
. "$here/../e2e/cluster/versions.sh"
cache=$(realpath -m "${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}")/tools
name=${1:-}
readonly here cache name

say() { printf 'tool.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# Shows progress, but not each downloaded module.
progress() { sed -u '/^go: /d; s/^/    /' >&2; }

# All modules share what they download and compile; it is kept, since they need it one after the other.
go_environment() {
    command -v go > /dev/null || die "Go 1.21 or later is needed to build $name: put it on PATH"
    export CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=mod GOMODCACHE=$cache/go/mod GOCACHE=$cache/go/build
    unset GOROOT GOBIN
}

# MODULE@VERSION LDFLAGS PACKAGE: build a package in a module of our own, which needs the other one.
build() {
    go mod init "plimsoll.test/$name" 2> /dev/null
    go get "$1"
    "$here/go-build.sh" "$work/out/$name" "$2" "$3"
}

make_actionlint() { go_environment; build "github.com/rhysd/actionlint@$ACTIONLINT_VERSION" "" github.com/rhysd/actionlint/cmd/actionlint; }

make_helm() { go_environment; build "helm.sh/helm/v3@$HELM_VERSION" "" helm.sh/helm/v3/cmd/helm; }

make_kstatus() {
    go_environment
    cp "$here"/go/kstatus/main.go .
    build "sigs.k8s.io/cli-utils@$KSTATUS_VERSION" "" .
}

# MODULE VERSION: a module of our own that requires another one, with the replacements that only the main module may have.
# What is replaced by a directory was published with the same version.
require_replaced() {
    local declared replacement
    go_environment
    go mod init "plimsoll.test/$name" 2> /dev/null
    go mod edit -require="$1@$2"
    go mod download "$1@$2"
    declared=$(go list -m -f '{{.GoMod}}' "$1@$2")
    while read -r replacement; do
        go mod edit -replace="$replacement"
    done < <(go mod edit -print "$declared" | awk -v version="$2" '
        /^replace [^(]|^\t[^\/].* => / { sub(/^replace /, ""); print $1 "=" ($3 ~ /^\./ ? $1 "@" version : $3 "@" $4) }')
}

make_prometheus() {
    local origin=github.com/prometheus-operator/prometheus-operator package=$name
    [[ $name != prometheus-operator ]] || package=operator
    require_replaced "$origin" "$PROMETHEUS_OPERATOR_VERSION"
    "$here/go-build.sh" "$work/out/$name" \
        "-X github.com/prometheus/common/version.Version=${PROMETHEUS_OPERATOR_VERSION#v}" "$origin/cmd/$package"
}

# They come with the module of their operator, read-only.
make_prometheus-operator-crds() {
    local origin=github.com/prometheus-operator/prometheus-operator
    go_environment
    go mod init "plimsoll.test/$name" 2> /dev/null
    go mod download "$origin@$PROMETHEUS_OPERATOR_VERSION"
    mkdir "$work/out/$name"
    install --mode 644 --target-directory "$work/out/$name" \
        "$GOMODCACHE/$origin@$PROMETHEUS_OPERATOR_VERSION"/example/prometheus-operator-crd/*.yaml
}

make_csi-driver() {
    go_environment
    cp "$here"/../e2e/csi/driver/*.go .
    go mod init "plimsoll.test/$name" 2> /dev/null
    go get "github.com/container-storage-interface/spec@$CSI_SPEC_VERSION" "k8s.io/kubelet@$KUBELET_VERSION"
    go mod tidy
    "$here/go-build.sh" "$work/out/$name" "" .
}

make_csi-provisioner() {
    local origin=github.com/kubernetes-csi/external-provisioner/v5
    require_replaced "$origin" "$CSI_PROVISIONER_VERSION"
    "$here/go-build.sh" "$work/out/$name" "-X main.version=$CSI_PROVISIONER_VERSION" "$origin/cmd/csi-provisioner"
}

make_flux() {
    local origin=github.com/fluxcd/$name
    require_replaced "$origin" "$FLUX_VERSION"
    "$here/go-build.sh" "$work/out/$name" "" "$origin"
    install -D --mode 644 --target-directory "$work/out/crds" "$GOMODCACHE/$origin@$FLUX_VERSION"/config/crd/bases/*.yaml
}

# Its module replaces Kubernetes' modules that its dependencies ask for.
make_kube-burner() {
    local origin=github.com/kube-burner/kube-burner/v2 part named=github.com/cloud-bulldozer/go-commons/v2/version
    go_environment
    go mod init "plimsoll.test/$name" 2> /dev/null
    go mod edit -require="$origin@$KUBE_BURNER_VERSION"
    for part in api apimachinery client-go; do
        go mod edit -replace="k8s.io/$part=k8s.io/$part@$KUBE_BURNER_KUBERNETES_VERSION"
    done
    go mod edit -replace="k8s.io/kube-openapi=k8s.io/kube-openapi@$KUBE_BURNER_OPENAPI_VERSION"
    "$here/go-build.sh" "$work/out/$name" "-X $named.Version=${KUBE_BURNER_VERSION#v}" "$origin/cmd/kube-burner"
}

# API servers of other versions than the cluster's.
make_kube-apiserver() {
    go_environment
    PLIMSOLL_BIN=$work/out PLIMSOLL_GO=$cache/go PLIMSOLL_KUBERNETES_VERSION=$version \
        "$here/../e2e/cluster/build/binaries" kube-apiserver
    mv "$work/out/kube-apiserver" "$work/out/$name"
}

make_promtool() {
    local package
    apt-get -qq download prometheus ||
        die "the distribution's package of Prometheus cannot be had: apt-get update, or put its promtool on PATH"
    package=$(echo prometheus_*.deb)
    dpkg-deb --extract "$package" unpacked
    cp unpacked/usr/bin/{promtool,prometheus} "$work/out/"
}

# The sources of a program; if they change, it is made again.
version() {
    case $name in
        actionlint) echo "$ACTIONLINT_VERSION" ;;
        helm) echo "$HELM_VERSION" ;;
        kstatus) echo "$KSTATUS_VERSION-$(sha256sum < "$here/go/kstatus/main.go" | head -c 8)" ;;
        prometheus-operator | prometheus-config-reloader | prometheus-operator-crds) echo "$PROMETHEUS_OPERATOR_VERSION" ;;
        kube-burner) echo "$KUBE_BURNER_VERSION" ;;
        source-controller | kustomize-controller) echo "$FLUX_VERSION" ;;
        csi-provisioner) echo "$CSI_PROVISIONER_VERSION" ;;
        csi-driver) cat "$here"/../e2e/csi/driver/*.go | cat - <(echo "$CSI_SPEC_VERSION" "$KUBELET_VERSION") | sha256sum | head -c 8 ;;
        kube-apiserver-oldest) echo "$OLDEST_API_VERSION" ;;
        kube-apiserver-newest) echo "$NEWEST_API_VERSION" ;;
        promtool) echo distribution-with-prometheus ;;
        *) sed -n '4,9s/^# //p' "$0" >&2; exit 2 ;;
    esac
}

version=$(version)
program=$cache/$name-$version/$name
readonly version program
if [[ ! -x $program ]]; then
    mkdir -p "$cache"
    exec 9> "$cache/lock"
    flock 9
fi
if [[ ! -x $program ]]; then
    say "building $name $version"
    work=$(mktemp -d "$cache/work.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/out" "$work/build"
    set +e # `( ... ) || ...` would have every command of the build go on after a failure
    (
        set -e
        cd "$work/build"
        case $name in
            prometheus-operator | prometheus-config-reloader) make_prometheus ;;
            source-controller | kustomize-controller) make_flux ;;
            kube-apiserver-*) make_kube-apiserver ;;
            *) "make_$name" ;;
        esac
    ) 2>&1 | tee "$work/log" | progress
    code=${PIPESTATUS[0]}
    set -e
    ((code == 0)) || { tail -n 20 "$work/log" >&2; die "$name cannot be built"; }
    mv -T "$work/out" "$(dirname "$program")"
fi
echo "$program"
