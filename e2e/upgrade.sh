#!/usr/bin/env bash
# Upgrade an installation of an earlier revision to this tree, as docs/how-to/install.md tells users to, while a run measures
# and a suite is between two rounds; e2e/tests/upgrade.py makes the objects, and checks what becomes of them.
#
#   e2e/upgrade.sh REVISION
#
# It needs a running cluster (e2e/cluster/cluster up) and Git's history. First it removes what is installed in the cluster,
# with all runs and results.
set -euo pipefail

(($# == 1)) || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
root=$(realpath "$(dirname "$0")/..")
cluster=$root/e2e/cluster/cluster
revision=$(git -C "$root" rev-parse --short=8 "$1^{commit}")
earlier=$root/build/upgrade/$revision
namespace=upgrade
readonly root cluster revision earlier namespace
eval "$("$cluster" env)"
helm=$("$root/hack/tool.sh" helm)
readonly helm

say() { printf 'upgrade.sh: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

check() { (cd "$root/e2e/tests" && "${PLIMSOLL_VENV:-$root/.venv}/bin/python" upgrade.py "$@"); }

remove() {
    kubectl delete namespace "$namespace" --ignore-not-found --wait=false
    ! kubectl get crd benchmarkruns.plimsoll.dev > /dev/null 2>&1 ||
        kubectl delete benchmarksuites,benchmarkruns --all --all-namespaces --timeout=180s
    "$helm" uninstall plimsoll --namespace plimsoll-system --ignore-not-found --wait
    kubectl delete crd benchmark{suites,runs,results}.plimsoll.dev --ignore-not-found
    kubectl delete namespace plimsoll-teardown "$namespace" --ignore-not-found --timeout=120s
}

# TREE TAG: install or upgrade to the chart of a tree, with images of a tag.
install() {
    local values=$root/build/upgrade/values.yaml
    cat > "$values" << VALUES
image: {repository: plimsoll-operator, tag: $2}
runner: {image: {repository: plimsoll-runner, tag: $2}}
VALUES
    "$helm" upgrade --install plimsoll "$1/charts/plimsoll" --namespace plimsoll-system --create-namespace \
        --values "$values" --set "watchNamespaces={$namespace}" --wait --timeout 180s > /dev/null
}

mkdir -p "$earlier"
git -C "$root" archive "$revision" | tar --extract --directory "$earlier"
SOURCE=$earlier TAG=upgrade-$revision "$root/e2e/install.sh" images
"$root/e2e/install.sh" images

say "removing what is installed"
remove > /dev/null
kubectl create namespace "$namespace" > /dev/null
kubectl label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted > /dev/null
say "installing $revision"
install "$earlier" "upgrade-$revision"
check prepare "$earlier"

if [[ -n $(check dropped) ]]; then
    say "upgrading while objects use fields that this version lacks"
    ! refusal=$(install "$root" e2e 2>&1) || die "the upgrade was not refused, although it drops $(check dropped)"
    printf '%s\n' "$refusal" >&2
    check refused "$refusal"
fi
say "upgrading to this tree"
install "$root" e2e
check upgraded
say "every check held; what a person had to do is named above"
