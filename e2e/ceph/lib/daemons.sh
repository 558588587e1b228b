# shellcheck shell=bash
# The manifests of the daemons. OSD Deployments have the names and labels that Rook gives them.

# ceph.conf and the program that every pod starts. The pods' templates name their checksum: a change restarts the pods.
settings_apply() {
    SETTINGS=$(configuration | cat - "$HERE/daemon" | sha256sum | head -c 8)
    readonly SETTINGS
    kube create configmap ceph-settings --dry-run=client --output yaml \
        --from-file ceph.conf=<(configuration) --from-file "daemon=$HERE/daemon" | apply
}

configuration() {
    cat "$HERE/ceph.conf"
    printf 'fsid = %s\nmon_host = [v2:%s:3300,v1:%s:6789]\n' "$FSID" "$MONITOR_ADDRESS" "$MONITOR_ADDRESS"
}

# Rook too makes the Service first: a monitor is known by its address, which has to outlive its pods.
monitor_service() {
    cat << EOF
apiVersion: v1
kind: Service
metadata: {name: rook-ceph-mon-a, labels: {app: rook-ceph-mon, ceph_daemon_type: mon, ceph_daemon_id: a, rook_cluster: $NAMESPACE}}
spec:
  selector: {app: rook-ceph-mon, ceph_daemon_id: a}
  publishNotReadyAddresses: true
  ports:
    - {name: tcp-msgr1, port: 6789}
    - {name: tcp-msgr2, port: 3300}
EOF
}

# NAME KIND ID NODE MEMORY LABELS: a Deployment with everything but the container's own environment and the volume /data,
# which the caller appends in this order.
daemon() {
    # Several Cephs have to fit into two workers, and OSDs do most of the work.
    local cpu=30m
    [[ $2 != osd ]] || cpu=100m
    cat << EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, labels: &labels {$(labels "$2" "$3")$6}, annotations: {plimsoll.dev/stand-in: e2e/ceph}}
spec:
  replicas: 1
  selector: {matchLabels: {app: $(app "$2"), ceph_daemon_id: "$3"}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: *labels, annotations: {plimsoll.dev/settings: "$SETTINGS"}}
    spec:
      ${4:+nodeSelector: {kubernetes.io/hostname: $4\}}
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 5
      containers:
        - name: $2
          image: $IMAGE
          imagePullPolicy: IfNotPresent
          command: [/bin/bash, /etc/ceph/daemon, $2]
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
          resources: {requests: {cpu: $cpu, memory: 128Mi}, limits: {memory: $5}}
          volumeMounts: [{name: ceph, mountPath: /etc/ceph}, {name: data, mountPath: /data}]
          env:
            - {name: POD_ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
EOF
}

app() { if [[ $1 == tools ]]; then echo rook-ceph-tools; else echo "rook-ceph-$1"; fi; }

# KIND ID
labels() {
    cat << EOF
app: $(app "$1"), app.kubernetes.io/component: cephclusters.ceph.rook.io, app.kubernetes.io/created-by: rook-ceph-operator,
  app.kubernetes.io/instance: "$2", app.kubernetes.io/managed-by: rook-ceph-operator, app.kubernetes.io/name: ceph-$1,
  app.kubernetes.io/part-of: $NAMESPACE, ceph_daemon_id: "$2", ceph_daemon_type: $1, rook.io/operator-namespace: $NAMESPACE,
  rook_cluster: $NAMESPACE
EOF
}

# [DIRECTORY]: the volumes; without a directory on the node the data goes with the pod. The path holds the fsid, so that
# nothing that an earlier cluster left can be taken for this one's.
volumes() {
    local source='emptyDir: {}'
    [[ -z ${1:-} ]] || source="hostPath: {path: $DATA/$NAMESPACE/$FSID/$1, type: DirectoryOrCreate}"
    cat << EOF
      volumes:
        - name: ceph
          projected:
            sources:
              - configMap: {name: ceph-settings}
              - secret: {name: rook-ceph-admin-keyring}
        - name: data
          $source
EOF
}

monitor() {
    daemon rook-ceph-mon-a mon a "$MONITOR_NODE" 512Mi ''
    cat << EOF
            - {name: FSID, value: $FSID}
            - {name: MONITOR_ADDRESS, value: $MONITOR_ADDRESS}
            - {name: MONITOR_KEY, valueFrom: {secretKeyRef: {name: rook-ceph-mon, key: mon-secret}}}
EOF
    volumes mon-a
}

manager() {
    daemon rook-ceph-mgr-a mgr a '' 1Gi ''
    volumes
}

# Every OSD is a host of its own in the CRUSH map, whatever worker it runs on: three are needed for a replicated pool of
# size 3 and for an erasure-coded one of 2+1.
osds() {
    local id nodes
    mapfile -t nodes < <(workers)
    for ((id = 0; id < OSDS; id++)); do
        osd "$id" "${nodes[id % ${#nodes[@]}]}" "ceph-host-$id"
    done
}

# ID NODE CRUSH_HOST
osd() {
    daemon "rook-ceph-osd-$1" osd "$1" "$2" 1Gi ", $(osd_labels "$1" "$3")"
    cat << EOF
            - {name: OSD_ID, value: "$1"}
            - {name: CRUSH_HOST, value: $3}
            - {name: DEVICE_CLASS, value: $DEVICE_CLASS}
EOF
    volumes "osd-$1"
}

# ID CRUSH_HOST
osd_labels() {
    cat << EOF
ceph-osd-id: "$1", ceph-version: $CEPH_VERSION-0, device-class: $DEVICE_CLASS, encrypted: "false", failure-domain: $2,
  osd: "$1", osd-store: bluestore, portable: "false", topology-location-host: $2, topology-location-root: default
EOF
}

# Two, as Rook starts for one active server: Ceph warns of a file system without a standby.
metadata_servers() {
    local id
    for id in a b; do
        daemon "rook-ceph-mds-$id" mds "$id" '' 512Mi ''
        printf '            - {name: MDS_ID, value: %s}\n' "$id"
        volumes
    done
}

toolbox() {
    daemon rook-ceph-tools tools tools '' 1Gi ''
    volumes
}
