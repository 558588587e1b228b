# shellcheck shell=bash
# Messages, waits with a timeout, and the Kubernetes cluster underneath.

# Only results go to standard output.
say() { printf '%s: [%3ds] %s\n' "${0##*/}" "$SECONDS" "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
trap 'say "failed: $BASH_COMMAND"' ERR

use_cluster() {
    local settings
    settings=$("$CLUSTER" env)
    eval "$settings"
}

kube() { timeout 60 kubectl --namespace "$NAMESPACE" "$@"; }
apply() { kube apply --server-side --force-conflicts --field-manager plimsoll-ceph --filename - > /dev/null; }
# Prints one worker a line, always in the same order.
workers() { kube get nodes --selector '!node-role.kubernetes.io/control-plane' --output name | sed 's,^node/,,' | sort; }

# Only one command at a time may make changes in a namespace.
lock() {
    exec 8> "${TMPDIR:-/tmp}/plimsoll-ceph-$NAMESPACE.lock"
    flock --nonblock 8 || { say "waiting for another command to end"; flock --timeout 600 8 || die "the other command has not ended within 600 s"; }
}

# COMMAND...: run it in a subshell while no command of another namespace changes what all namespaces share.
exclusively() (
    exec 9> "${TMPDIR:-/tmp}/plimsoll-ceph.lock"
    flock --timeout 300 9 || die "another command has changed what all namespaces share for 300 s"
    "$@"
)

# LIMIT_SECONDS WHAT WHY COMMAND...: wait until a command succeeds; the command WHY prints the reason for waiting.
wait_until() {
    local limit=$1 what=$2 why=$3 deadline=$((SECONDS + $1)) reason='' last=''
    shift 3
    until "$@" > /dev/null 2>&1; do
        # A failing WHY must not end the wait.
        reason=$("$why" 2>&1 | paste -sd ' ' || true)
        ((SECONDS < deadline)) || die "timed out after $limit s waiting for $what: ${reason:-no reason known}"
        [[ $reason == "$last" ]] || say "waiting for $what: $reason"
        last=$reason
        sleep 1
    done
}

build() { DOCKER_BUILDKIT=1 "$CLUSTER" docker build --quiet --network host "$@" > /dev/null; }

image_ensure() {
    local base options=()
    [[ $SUITE != "$STABLE_SUITE" ]] || options=(--build-arg "LEAST_CEPH_VERSION=$STABLE_CEPH_VERSION")
    base=$("$CLUSTER" base-image "$SUITE")
    say "building and loading $IMAGE"
    build --build-arg "BASE_IMAGE=$base" "${options[@]}" --target tools --tag "$TOOLS_IMAGE" "$HERE/../.."
    build --build-arg "BASE_IMAGE=$TOOLS_IMAGE" --tag "$IMAGE" "$HERE"
    "$CLUSTER" load "$IMAGE" 8>&-
}
