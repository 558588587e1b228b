# shellcheck shell=bash
# The users of the drivers and the Secrets with their keys. Rook makes them for the drivers that it installs, with these
# names and capabilities.

# shellcheck disable=SC2034 # for the entry script
readonly SECRETS=(rook-csi-rbd-provisioner rook-csi-rbd-node rook-csi-cephfs-provisioner rook-csi-cephfs-node)

keys_ensure() {
    key csi-rbd-provisioner userID userKey mon 'profile rbd' mgr 'allow rw' osd 'profile rbd'
    key csi-rbd-node userID userKey mon 'profile rbd' mgr 'allow rw' osd 'profile rbd'
    key csi-cephfs-provisioner adminID adminKey mon 'allow r' mgr 'allow rw' osd 'allow rw tag cephfs metadata=*' mds 'allow *'
    key csi-cephfs-node adminID adminKey mon 'allow r' mgr 'allow rw' osd 'allow rw tag cephfs *=*' mds 'allow rw'
}

# USER ID_FIELD KEY_FIELD CAPABILITY...
key() {
    local user=$1 id_field=$2 key_field=$3 value
    shift 3
    value=$(kube exec deployment/rook-ceph-tools -- timeout 30 ceph auth get-or-create-key "client.$user" "$@")
    apply << EOF
apiVersion: v1
kind: Secret
metadata: {name: rook-$user, annotations: {plimsoll.dev/stand-in: e2e/csi}}
type: kubernetes.io/rook
stringData: {$id_field: $user, $key_field: $value}
EOF
}
