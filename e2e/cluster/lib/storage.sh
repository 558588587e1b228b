# shellcheck shell=bash
# The storage of the workers.
#
# File systems: directories of an ext4 in memory, because measurements on the machine's disk stall whenever something else
# writes to it, such as the loading of an image. Its loop device ends with the node. In a locally assembled node they are
# made by go/volumes, which needs no pod for each of them; in kind's stock image by local-path-provisioner.
#
# Block volumes: loop devices on sparse files, offered as static local PersistentVolumes of the StorageClass `block`. Loop
# devices belong to the machine, so everything is named after this cluster, and dropped with it.

readonly BLOCKS_PER_WORKER=2 BLOCK_SIZE=1Gi FILE_SYSTEM_SIZE=8Gi

# NODE COMMAND ARGUMENT...: run node-storage in a node.
in_node() {
    local node=$1
    shift
    timeout 60 docker exec --interactive "$node" sh -s -- "$@" < "$HERE/lib/node-storage" 9>&-
}

file_systems_ensure() {
    local node
    for node in $(workers); do in_node "$node" memory "$FILE_SYSTEM_SIZE" "$(file_systems_path)"; done
}

is_stock() { [[ -n $(cluster_kubectl get namespace local-path-storage --ignore-not-found --output name) ]]; }
file_systems_path() { if is_stock; then echo /var/local-path-provisioner; else echo /var/lib/plimsoll-volumes/disk; fi; }

storage_ready() {
    if is_stock; then
        cluster_kubectl --namespace local-path-storage rollout status deployment/local-path-provisioner --timeout 1s
    else
        cluster_kubectl --namespace plimsoll-volumes rollout status daemonset/volumes --timeout 1s
    fi
}

# Prints NODE NAME of every block volume.
blocks() {
    local node index
    for node in $(workers); do
        for ((index = 0; index < BLOCKS_PER_WORKER; index++)); do printf '%s %s\n' "$node" "block-$node-$index"; done
    done
}

blocks_ensure() {
    local node name
    while read -r node name; do
        in_node "$node" make "$name" "$BLOCK_SIZE"
    done < <(blocks)
    { block_class; while read -r node name; do block_volume "$node" "$name"; done < <(blocks); } |
        cluster_kubectl apply --server-side --field-manager plimsoll-cluster --filename - >> "$LOG"
}

blocks_drop() {
    local node
    for node in $(workers); do
        in_node "$node" drop || say "could not detach the loop devices of $node"
    done
}

# Detach the devices of a stopped node, whose files are gone with its container.
blocks_sweep() {
    local device file
    ((EUID == 0)) || return 0
    while read -r device file; do
        # shellcheck disable=SC2153 # the cluster's name
        [[ $file != */block-"$NAME"-* || $file != *"(deleted)" ]] || losetup --detach "$device"
    done < <(losetup --list --noheadings --raw --output NAME,BACK-FILE)
}

# Make volumes without a claim available again.
blocks_recycle() {
    local node name phase count=0
    while read -r node name; do
        phase=$(cluster_kubectl get persistentvolume "$name" --ignore-not-found --output 'jsonpath={.status.phase}')
        [[ $phase == Released || $phase == Failed ]] || continue
        cluster_kubectl delete persistentvolume "$name" >> "$LOG"
        in_node "$node" wipe "$name"
        block_volume "$node" "$name" | cluster_kubectl apply --server-side --field-manager plimsoll-cluster --filename - >> "$LOG"
        count=$((count + 1))
    done < <(blocks)
    say "recycled $count block volumes"
}

block_class() {
    cat << EOF
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: block
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
EOF
}

# NODE NAME
block_volume() {
    cat << EOF
apiVersion: v1
kind: PersistentVolume
metadata:
  name: $2
  labels: {plimsoll/block: ""}
spec:
  storageClassName: block
  volumeMode: Block
  capacity: {storage: $BLOCK_SIZE}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: /dev/plimsoll/$2}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [$1]}]
---
EOF
}
