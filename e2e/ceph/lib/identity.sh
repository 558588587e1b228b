# shellcheck shell=bash
# The namespace, the identity of the cluster (fsid, keys, address of its monitor), and the objects in which Rook publishes it.

# Prints "ceph" if this script created the namespace, "place" if e2e/install.sh did and it is otherwise empty,
# "foreign" if others did or it has a real Rook, nothing if there is no namespace.
namespace_owner() {
    local owner path='{.metadata.labels.plimsoll\.dev/e2e}{" "}{.kind}'
    owner=$(kube get namespace "$NAMESPACE" --ignore-not-found --output "jsonpath=$path" |
        awk '$1 == "ceph" || $1 == "place" { print $1; next } NF { print "foreign" }')
    [[ -z $owner ]] || ! has_real_rook || owner=foreign
    printf '%s' "$owner"
}

# The stand-in's Deployment and CephCluster carry its annotation; those of a real Rook do not.
has_real_rook() {
    local kinds=deployments path='{.kind} {.metadata.name} {.metadata.annotations.plimsoll\.dev/stand-in}'
    [[ -z $(timeout 60 kubectl get crd cephclusters.ceph.rook.io --ignore-not-found --output name) ]] || kinds+=,cephclusters
    kube get "$kinds" --output "jsonpath={range .items[*]}$path{'\n'}{end}" |
        awk '($1 == "CephCluster" || $2 == "rook-ceph-operator") && $3 == "" { found = 1 } END { exit !found }'
}

refuse_foreign() {
    [[ $(namespace_owner) != foreign ]] ||
        die "namespace $NAMESPACE was not created by this script: set PLIMSOLL_CEPH_NAMESPACE to another namespace"
}

namespace_ensure() {
    refuse_foreign
    [[ $(kube get namespace "$NAMESPACE" --ignore-not-found --output 'jsonpath={.status.phase}') != Terminating ]] ||
        die "namespace $NAMESPACE is still being deleted: run 'ceph down', then 'ceph up'"
    apply << EOF
apiVersion: v1
kind: Namespace
metadata:
  name: $NAMESPACE
  labels: {plimsoll.dev/e2e: ceph, pod-security.kubernetes.io/enforce: privileged}
EOF
}

namespace_delete() {
    refuse_foreign
    say "deleting namespace $NAMESPACE"
    timeout 60 kubectl delete namespace "$NAMESPACE" --ignore-not-found --wait=false > /dev/null
    wait_until 120 "namespace $NAMESPACE to go" namespace_remains namespace_gone
}
namespace_gone() { [[ -z $(namespace_owner) ]]; }
namespace_remains() {
    kube get pods --output 'jsonpath={range .items[*]}{.metadata.name} {end}'
    kube get namespace "$NAMESPACE" --output 'jsonpath={.status.conditions[?(@.status=="True")].message}'
}

data_delete() {
    local node
    for node in $(workers); do
        # shellcheck disable=SC2016 # for the node's shell
        timeout 60 "$CLUSTER" docker exec "$node" sh -ec \
            'rm -rf "$1/$2"; if [ -d "$1" ]; then rmdir --ignore-fail-on-non-empty "$1"; fi' - "$DATA" "$NAMESPACE"
    done
}

new_key() { timeout 60 "$CLUSTER" docker run --rm --network none "$IMAGE" ceph-authtool --gen-print-key; }

# Created once, as one object, so that a second start cannot mix two identities.
identity_ensure() {
    [[ -z $(kube get secret rook-ceph-mon --ignore-not-found --output name) ]] || return 0
    local admin monitor
    admin=$(new_key)
    monitor=$(new_key)
    kube create --filename - > /dev/null << EOF
apiVersion: v1
kind: Secret
metadata: {name: rook-ceph-mon}
type: kubernetes.io/rook
stringData:
  ceph-username: client.admin
  ceph-secret: $admin
  mon-secret: $monitor
  fsid: $(< /proc/sys/kernel/random/uuid)
EOF
}

secret_value() { kube get secret rook-ceph-mon --output "jsonpath={.data.$1}" | base64 --decode; }

# Sets FSID, MONITOR_ADDRESS, MONITOR_NODE and CEPH_VERSION.
identity_read() {
    FSID=$(secret_value fsid)
    MONITOR_ADDRESS=$(kube get service rook-ceph-mon-a --output 'jsonpath={.spec.clusterIP}')
    MONITOR_NODE=$(workers | tail -n 1)
    CEPH_VERSION=$(timeout 60 "$CLUSTER" docker run --rm --network none "$IMAGE" ceph-mon --version | awk '{ print $3 }')
    # shellcheck disable=SC2034  # daemons.sh uses them
    readonly FSID MONITOR_ADDRESS MONITOR_NODE CEPH_VERSION
}

# The objects that users of Rook read: the monitors' addresses, and the Secrets with the administrator's key.
consumer_objects() {
    local admin node_address
    admin=$(secret_value ceph-secret)
    node_address=$(kube get node "$MONITOR_NODE" --output 'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}')
    cat << EOF
apiVersion: v1
kind: ConfigMap
metadata: {name: rook-ceph-mon-endpoints}
data:
  csi-cluster-config-json: '[{"clusterID":"$NAMESPACE","monitors":["$MONITOR_ADDRESS:6789"],"namespace":""}]'
  data: a=$MONITOR_ADDRESS:6789
  externalMons: ''
  mapping: '{"node":{"a":{"Name":"$MONITOR_NODE","Hostname":"$MONITOR_NODE","Address":"$node_address"}}}'
  maxMonId: '0'
  outOfQuorum: ''
---
apiVersion: v1
kind: ConfigMap
metadata: {name: rook-config-override}
data: {config: ''}
---
apiVersion: v1
kind: Secret
metadata: {name: rook-ceph-config}
type: kubernetes.io/rook
stringData:
  mon_host: '[v2:$MONITOR_ADDRESS:3300,v1:$MONITOR_ADDRESS:6789]'
  mon_initial_members: a
---
apiVersion: v1
kind: Secret
metadata: {name: rook-ceph-admin-keyring}
type: kubernetes.io/rook
stringData:
  keyring: |
    [client.admin]
    key = $admin
    caps mds = "allow *"
    caps mon = "allow *"
    caps osd = "allow *"
    caps mgr = "allow *"
EOF
}
