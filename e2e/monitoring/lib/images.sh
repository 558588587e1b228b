# shellcheck shell=bash
# The images: the distribution's Prometheus, and the programs that hack/tool.sh builds.

readonly PROMETHEUS_IMAGE=plimsoll-prometheus:e2e OPERATOR_IMAGE=plimsoll-$OPERATOR:e2e RELOADER_IMAGE=plimsoll-$RELOADER:e2e

# Sets PROMETHEUS_VERSION.
images_ensure() {
    local base
    base=$("$CLUSTER" base-image "$STABLE_SUITE")
    say "building and loading the images"
    build prometheus "$PROMETHEUS_IMAGE" "$HERE" "BASE_IMAGE=$base"
    program "$OPERATOR" "$OPERATOR_IMAGE"
    program "$RELOADER" "$RELOADER_IMAGE"
    "$CLUSTER" load "$PROMETHEUS_IMAGE" "$OPERATOR_IMAGE" "$RELOADER_IMAGE" 8>&-
    PROMETHEUS_VERSION=$(prometheus_version)
    # shellcheck disable=SC2034  # objects.sh uses it
    readonly PROMETHEUS_VERSION
}

# NAME IMAGE
program() {
    local file
    file=$("$TOOL" "$1")
    build program "$2" "$(dirname "$file")" "PROGRAM=$1"
}

# TARGET IMAGE CONTEXT ARGUMENT
build() {
    DOCKER_BUILDKIT=1 "$CLUSTER" docker build --quiet --network host --file "$HERE/Dockerfile" --build-arg "$4" \
        --target "$1" --tag "$2" "$3" > /dev/null
}

# "prometheus, version 2.53.3+ds1 (branch: ...": its operator wants the number alone.
prometheus_version() {
    timeout 60 "$CLUSTER" docker run --rm --network none "$PROMETHEUS_IMAGE" --version 2>&1 |
        sed -n 's/^prometheus, version \([0-9.]*\).*/\1/p'
}

# IMAGE...: recreate the pods if the content of an image has changed under the same name.
image_sum() { timeout 60 "$CLUSTER" docker image inspect --format '{{.Id}}' "$@" | sha256sum | head -c 12; }
