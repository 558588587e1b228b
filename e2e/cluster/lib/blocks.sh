# shellcheck shell=bash
# Real block volumes: loop devices on sparse files of the workers, offered as static local PersistentVolumes of the
# StorageClass `block`. Loop devices belong to the machine, so everything is named after this cluster, and dropped with it.

readonly BLOCKS_PER_WORKER=2 BLOCK_SIZE=1Gi

# NODE COMMAND ARGUMENT...: run block-volume in a node.
in_node() {
    local node=$1
    shift
    timeout 60 docker exec --interactive "$node" sh -s -- "$@" < "$HERE/lib/block-volume" 9>&-
}

# Prints NODE NAME of every volume.
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

# Detach what a node that stood still could not be asked for any more: its files went with its container.
blocks_sweep() {
    local device file
    ((EUID == 0)) || return 0
    while read -r device file; do
        # shellcheck disable=SC2153 # the cluster's name
        [[ $file != */block-"$NAME"-* || $file != *"(deleted)" ]] || losetup --detach "$device"
    done < <(losetup --list --noheadings --raw --output NAME,BACK-FILE)
}

# Make the volumes whose claims are gone usable again.
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
