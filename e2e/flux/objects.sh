# shellcheck shell=bash
# The manifests. Both controllers may do everything, as in Flux's own installation kustomize-controller may.

namespace() {
    cat << EOF
apiVersion: v1
kind: Namespace
metadata:
  name: $NAMESPACE
  labels: {${LABEL/=/: }, pod-security.kubernetes.io/enforce: restricted}
EOF
}

objects() {
    cat << EOF
apiVersion: v1
kind: ServiceAccount
metadata: {name: flux, namespace: $NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plimsoll-e2e-flux, labels: {${LABEL/=/: }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: flux, namespace: $NAMESPACE}]
EOF
    program source-controller flux "[source-controller, --watch-all-namespaces, --storage-path=/data,
            --storage-adv-addr=source-controller.$NAMESPACE.svc.cluster.local.]" 9090
    program kustomize-controller flux "[kustomize-controller, --watch-all-namespaces]" 9440
    program git default "[lighttpd, -D, -f, /etc/lighttpd/git.conf]" 8080
    service source-controller 9090
    service git 8080
}

# NAME SERVICE_ACCOUNT COMMAND PORT: a program that is ready when it listens on a port.
program() {
    cat << EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: $NAMESPACE}
spec:
  replicas: 1
  selector: {matchLabels: {app: $1}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: $1}, annotations: {plimsoll.dev/image: "$REVISION"}}
    spec:
      serviceAccountName: $2
      enableServiceLinks: false
      terminationGracePeriodSeconds: 5
      securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
      volumes: [{name: data, emptyDir: {sizeLimit: 256Mi}}, {name: tmp, emptyDir: {sizeLimit: 256Mi}}]
      containers:
        - name: program
          image: $IMAGE
          imagePullPolicy: IfNotPresent
          command: $3
          env: [{name: RUNTIME_NAMESPACE, value: $NAMESPACE}]
          ports: [{name: http, containerPort: $4}]
          readinessProbe: {tcpSocket: {port: http}, periodSeconds: 2}
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 512Mi}}
          volumeMounts: [{name: data, mountPath: /data}, {name: tmp, mountPath: /tmp}]
EOF
}

# NAME PORT
service() {
    cat << EOF
---
apiVersion: v1
kind: Service
metadata: {name: $1, namespace: $NAMESPACE}
spec:
  selector: {app: $1}
  ports: [{name: http, port: 80, targetPort: $2}]
EOF
}
