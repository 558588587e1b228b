# shellcheck shell=bash
# What is made once and cached: programs, the node image, the base image. A product's name says what it was made from, so a
# change makes a new one; it appears complete or not at all.

# shellcheck disable=SC2034 # for the entry script and apiserver.sh
readonly API_PROGRAMS=(kube-apiserver etcd kubectl)
readonly NODE_PROGRAMS=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl crictl pause
    etcd coredns volumes)

# FILE...: eight digits that change with the files' contents.
fingerprint() { cat "$@" | sha256sum | head -c 8; }

PROGRAMS_KEY=$KUBERNETES_VERSION-$(printf '%s\n' "$KUBERNETES_VERSION" "$KIND_VERSION" "$ETCD_VERSION" "$COREDNS_VERSION" |
    cat - "$HERE"/go/*/*.go | sha256sum | head -c 8)
readonly PROGRAMS_KEY
readonly PROGRAMS=$CACHE/programs-$PROGRAMS_KEY

# PROGRAM...: whether they are in PROGRAMS.
programs_exist() {
    local name
    for name; do [[ -x $PROGRAMS/$name ]] || return 1; done
}

# PROGRAM...: have them in PROGRAMS.
programs_ensure() {
    local name missing=()
    for name; do [[ -x $PROGRAMS/$name ]] || missing+=("$name"); done
    ((${#missing[@]})) || return 0
    [[ -n $GO ]] || die "Go 1.21 or later is needed to build ${missing[*]}: put it on PATH"
    mkdir -p "$PROGRAMS" "$WORK/bin"
    step 3600 "compiling ${missing[*]} (all of Kubernetes takes 10 to 20 minutes on two cores)" \
        env PATH="$(dirname "$GO"):$PATH" PLIMSOLL_BIN="$WORK/bin" PLIMSOLL_GO="$CACHE/go" \
        nice -n 10 "$HERE/build/binaries" "${missing[@]}"
    [[ ! -d $WORK/bin/kind-files ]] || rm -rf "$PROGRAMS/kind-files"
    mv "$WORK"/bin/* "$PROGRAMS/"
    programs_finish
}

# What Go keeps helps only as long as there is something left to build.
programs_finish() {
    programs_exist kind "${NODE_PROGRAMS[@]}" || return 0
    chmod -R u+w "$CACHE/go"
    rm -rf "$CACHE/go"
}

node_archive() {
    local key
    key=$(fingerprint "$HERE"/node/* "$HERE"/build/{node-image,node-hook,images.py} <(echo "$PROGRAMS_KEY" "$NODE_SUITE"))
    printf '%s\n' "$CACHE/node-$KUBERNETES_VERSION-$key.tar"
}

node_archive_ensure() {
    local archive mirror
    archive=$(node_archive)
    [[ ! -f $archive ]] || return 0
    need_root "assemble a node image, and no container registry can be reached"
    need mmdebstrap:mmdebstrap containerd:containerd jq:jq python3:python3
    programs_ensure kind "${NODE_PROGRAMS[@]}"
    mirror=$(debian_mirror)
    step 1500 "assembling the node image (1 to 2 minutes)" \
        env PLIMSOLL_WORK="$WORK/node" PLIMSOLL_BIN="$PROGRAMS" PLIMSOLL_MIRROR="$mirror" "$HERE/build/node-image" "$archive"
}

# Sets NODE_IMAGE, the image to run nodes of.
node_image_ensure() {
    local archive
    archive=$(node_archive)
    if [[ -n ${PLIMSOLL_NODE_IMAGE:-} && $PLIMSOLL_NODE_IMAGE != local ]]; then
        NODE_IMAGE=$PLIMSOLL_NODE_IMAGE
    elif [[ -z ${PLIMSOLL_NODE_IMAGE:-} && ! -f $archive ]] && image_available "$STOCK_NODE_IMAGE"; then
        NODE_IMAGE=$STOCK_NODE_IMAGE
    else
        NODE_IMAGE=plimsoll/node:$KUBERNETES_VERSION
        node_archive_ensure
        image_import "$NODE_IMAGE" "$archive" --change 'ENV container=docker' \
            --change 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]'
    fi
}

image_available() {
    ! docker image inspect "$1" > /dev/null 2>&1 || return 0
    say "trying to pull $1"
    timeout 600 docker pull --quiet "$1" >> "$LOG" 2>&1 9>&-
}

# [SUITE]: prints the image of that suite of Debian to build others on.
base_image() {
    local suite=${1:-$BASE_SUITE} archive mirror reference stock
    reference=plimsoll-base:$suite stock=$STOCK_BASE_IMAGE:$suite-slim
    archive=$CACHE/base-$suite-$(fingerprint "$HERE/build/base-image").tar
    if [[ ! -f $archive ]] && image_available "$stock"; then
        printf '%s\n' "$stock"
        return
    fi
    if [[ ! -f $archive ]]; then
        need_root "assemble a base image, and no container registry can be reached"
        need mmdebstrap:mmdebstrap
        mirror=$(debian_mirror)
        step 700 "assembling the base image" env PLIMSOLL_WORK="$WORK/base" PLIMSOLL_MIRROR="$mirror" \
            "$HERE/build/base-image" "$suite" "$archive"
    fi
    image_import "$reference" "$archive" --change 'CMD ["/bin/bash"]' \
        --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
    printf '%s\n' "$reference"
}
