# shellcheck shell=bash
# The kind cluster.

readonly CLUSTER_BACK_SECONDS=60

cluster_kubectl() { timeout 60 "$(kubectl_path)" --kubeconfig "$KUBECONFIG_FILE" "$@" 9>&-; }
kubectl_path() { if [[ -x $PROGRAMS/kubectl ]]; then echo "$PROGRAMS/kubectl"; else echo "$RUN/kubectl"; fi; }

# ARGUMENT...: list the cluster's node containers with `docker ps`.
node_list() { docker ps --filter "label=io.x-k8s.kind.cluster=$NAME" "$@"; }
workers() { node_list --filter label=io.x-k8s.kind.role=worker --format '{{.Names}}' | sort; }
control_plane_id() { node_list --all --no-trunc --filter label=io.x-k8s.kind.role=control-plane --format '{{.ID}}'; }
cluster_exists() { [[ -n $(node_list --all --quiet) ]]; }

# A cluster of this name is ours if we created it, or were about to; in our own daemon there is no other.
cluster_is_ours() {
    local owner
    ! daemon_is_own || return 0
    owner=$(cat "$RUN/cluster" 2> /dev/null) && [[ $owner == creating || $owner == "$(control_plane_id)" ]]
}

refuse_foreign() {
    ! cluster_exists || cluster_is_ours ||
        die "a kind cluster named $NAME exists that this script did not create. Delete it, or use another Docker daemon (DOCKER_HOST)"
}

cluster_answers() { cluster_kubectl get --raw /readyz --request-timeout 5s > /dev/null 2>&1; }

# After a crash of the machine or the daemon, nodes are stopped or restarting.
cluster_comes_back() {
    local begin=$SECONDS
    [[ -f $KUBECONFIG_FILE && -n $(node_list --quiet --filter label=io.x-k8s.kind.role=control-plane) ]] || return 1
    until cluster_answers; do
        ((SECONDS - begin < CLUSTER_BACK_SECONDS)) || return 1
        sleep 1
    done
}

cluster_create() {
    node_image_ensure
    raise_inotify
    programs_ensure kind
    kubectl_ensure
    echo creating > "$RUN/cluster"
    step 600 "creating the cluster" "$PROGRAMS/kind" create cluster --name "$NAME" --image "$NODE_IMAGE" \
        --config "$HERE/kind.yaml" --kubeconfig "$KUBECONFIG_FILE"
    control_plane_id > "$RUN/cluster"
}

# Prefer the one built with the other programs; where the node image was pulled, take the one in it.
kubectl_ensure() {
    local container
    [[ ! -x $(kubectl_path) ]] || return 0
    container=$(docker create "$NODE_IMAGE")
    docker cp --follow-link "$container:/usr/bin/kubectl" "$RUN/kubectl" > /dev/null
    docker rm "$container" > /dev/null
}

# Every kubelet and containerd takes some; without them, a worker hangs when it joins, with a message only in its journal.
raise_inotify() {
    local setting=fs.inotify.max_user_instances
    (($(sysctl -n $setting) < 1024)) || return 0
    sysctl -qw $setting=1024 2> /dev/null || say "could not raise $setting to 1024: a node may hang when it joins"
}

pods_ready() {
    cluster_kubectl wait node --all --for condition=Ready --timeout 1s &&
        cluster_kubectl --namespace kube-system rollout status deployment/coredns --timeout 1s &&
        storage_ready
}

cluster_delete() {
    if ! cluster_exists; then
        return
    elif ! cluster_is_ours; then
        say "the kind cluster $NAME was not created by this script and is not deleted"
    else
        say "deleting the cluster"
        blocks_drop
        # As kind does it, but kind may not be there any more.
        node_list --all --quiet | xargs docker rm --force --volumes >> "$LOG"
        blocks_sweep
    fi
}
