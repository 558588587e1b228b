# shellcheck shell=bash
# The manifests of the drivers. Each serves StorageClasses that name it: <namespace of Rook's operator>.<kind>.csi.ceph.com.

readonly PROVISIONER=csi-provisioner PLUGIN=csi-plugin

driver() { echo "$NAMESPACE.$1.csi.ceph.com"; }

objects() {
    local kind
    for kind in "${KINDS[@]}"; do csi_driver "$kind"; done
    account
    provisioner
    plugin
}

# KIND. Without attachment, nothing keeps a second node from using an image.
csi_driver() {
    cat << EOF
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: $(driver "$1"), annotations: {plimsoll.dev/stand-in: e2e/csi}}
spec: {attachRequired: false, podInfoOnMount: false, fsGroupPolicy: File, volumeLifecycleModes: [Persistent]}
EOF
}

# What external-provisioner needs; Secrets only in this namespace.
account() {
    local name=plimsoll-csi-$NAMESPACE
    cat << EOF
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: $PROVISIONER, annotations: {plimsoll.dev/stand-in: e2e/csi}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $name, annotations: {plimsoll.dev/stand-in: e2e/csi}}
rules:
  - {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, watch, create, patch, delete]}
  - {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [get, list, watch, update]}
  - {apiGroups: [""], resources: [events], verbs: [list, watch, create, update, patch]}
  - {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
  - {apiGroups: [storage.k8s.io], resources: [storageclasses, csinodes, volumeattachments], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $name, annotations: {plimsoll.dev/stand-in: e2e/csi}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $name}
subjects: [{kind: ServiceAccount, name: $PROVISIONER, namespace: $NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: $PROVISIONER, annotations: {plimsoll.dev/stand-in: e2e/csi}}
rules:
  - {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: $PROVISIONER, annotations: {plimsoll.dev/stand-in: e2e/csi}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: $PROVISIONER}
subjects: [{kind: ServiceAccount, name: $PROVISIONER, namespace: $NAMESPACE}]
EOF
}

# NAME: the metadata of the template of a pod.
template() { echo "{labels: {app: $1, app.kubernetes.io/part-of: plimsoll-csi}, annotations: {plimsoll.dev/image: \"$REVISION\"}}"; }

# KIND DIRECTORY: the arguments of a driver that both its parts have.
arguments() { echo "-kind=$1, -name=$(driver "$1"), -socket=$2/csi.sock, -clusters=/etc/clusters/csi-cluster-config-json"; }

provisioner() {
    local kind
    cat << EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $PROVISIONER, annotations: {plimsoll.dev/stand-in: e2e/csi}}
spec:
  replicas: 1
  selector: {matchLabels: {app: $PROVISIONER}}
  strategy: {type: Recreate}
  template:
    metadata: $(template "$PROVISIONER")
    spec:
      serviceAccountName: $PROVISIONER
      enableServiceLinks: false
      terminationGracePeriodSeconds: 1
      volumes:
$(clusters_volume)
        - {name: sockets, emptyDir: {}}
      containers:
EOF
    for kind in "${KINDS[@]}"; do
        cat << EOF
        - name: $kind
          image: $IMAGE
          imagePullPolicy: IfNotPresent
          args: [sh, -ec, 'mkdir -p /csi/$kind && exec csi-driver "\$@"', csi-driver, $(arguments "$kind" "/csi/$kind")]
          resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 512Mi}}
          volumeMounts: [{name: sockets, mountPath: /csi}, {name: clusters, mountPath: /etc/clusters}]
        - name: $kind-provisioner
          image: $IMAGE
          imagePullPolicy: IfNotPresent
          args: [csi-provisioner, --csi-address=/csi/$kind/csi.sock, --timeout=60s, --retry-interval-start=500ms,
            --retry-interval-max=5s, --default-fstype=ext4, --extra-create-metadata, --v=1]
          resources: {requests: {cpu: 10m, memory: 32Mi}, limits: {memory: 256Mi}}
          volumeMounts: [{name: sockets, mountPath: /csi}]
EOF
    done
}

clusters_volume() { echo '        - {name: clusters, configMap: {name: rook-ceph-mon-endpoints}}'; }

plugin() {
    local kind directory kubelet=/var/lib/kubelet
    cat << EOF
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: $PLUGIN, annotations: {plimsoll.dev/stand-in: e2e/csi}}
spec:
  selector: {matchLabels: {app: $PLUGIN}}
  template:
    metadata: $(template "$PLUGIN")
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 10
      volumes:
$(clusters_volume)
        - {name: kubelet, hostPath: {path: $kubelet, type: Directory}}
        - {name: devices, hostPath: {path: /dev, type: Directory}}
      containers:
EOF
    for kind in "${KINDS[@]}"; do
        directory=$kubelet/plugins/$(driver "$kind")
        cat << EOF
        - name: $kind
          image: $IMAGE
          imagePullPolicy: IfNotPresent
          args: [sh, -ec, 'mkdir -p $directory && exec csi-driver "\$@"', csi-driver, $(arguments "$kind" "$directory"),
            -registry=$kubelet/plugins_registry, -kubelet-socket=$directory/csi.sock]
          env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
          securityContext: {privileged: true}
          resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 1Gi}}
          volumeMounts:
            - {name: clusters, mountPath: /etc/clusters}
            - {name: kubelet, mountPath: $kubelet, mountPropagation: Bidirectional}
            - {name: devices, mountPath: /dev}
EOF
    done
}
