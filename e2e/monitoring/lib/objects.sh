# shellcheck shell=bash
# The namespace, definitions and manifests. Cluster-scoped objects carry a label, by which `down` finds them.

# SEPARATOR: the label of all our objects, as a selector or as YAML.
label() { printf 'plimsoll.dev/e2e%smonitoring' "$1"; }

# Never touch a monitoring stack that was installed by others.
refuse_foreign() {
    local object
    for object in "namespace/$NAMESPACE" customresourcedefinition/prometheuses.monitoring.coreos.com; do
        [[ $(kube get "$object" --ignore-not-found --output 'jsonpath={.kind} {.metadata.labels.plimsoll\.dev/e2e}') =~ ^(|.*\ monitoring)$ ]] ||
            die "$object was not created by this script; remove it, or use another cluster"
    done
}

namespace_ensure() {
    [[ $(kube get namespace "$NAMESPACE" --ignore-not-found --output 'jsonpath={.status.phase}') != Terminating ]] ||
        die "namespace $NAMESPACE is still being deleted: run 'monitoring down', then 'monitoring up'"
    namespace | apply
}

definitions_ensure() {
    local directory kind
    directory=$("$TOOL" prometheus-operator-crds)
    say "installing the definitions of ${KINDS[*]}"
    for kind in "${KINDS[@]}"; do
        kube label --local --filename "$directory/monitoring.coreos.com_$kind.yaml" --output yaml "$(label '=')"
        echo ---
    done | apply
    wait_until 30 "the definitions to be established" definitions_state definitions_established
}

# `kubectl wait` fails at once on a definition that has no condition yet.
definitions_established() { kube wait crd "${KINDS[@]/%/.monitoring.coreos.com}" --for=condition=Established --timeout 10s; }
definitions_state() {
    kube get crd --selector "$(label '=')" --output \
        'jsonpath={range .items[*].status.conditions[?(@.status!="True")]}{.message}; {end}'
}

namespace() {
    cat << EOF
apiVersion: v1
kind: Namespace
metadata:
  name: $NAMESPACE
  labels: {$(label ': '), pod-security.kubernetes.io/enforce: restricted}
EOF
}

# NAME: a ServiceAccount with the ClusterRole whose rules the caller appends.
account() {
    cat << EOF
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: $1, namespace: $NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plimsoll-e2e-$1, labels: {$(label ': ')}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plimsoll-e2e-$1}
subjects: [{kind: ServiceAccount, name: $1, namespace: $NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plimsoll-e2e-$1, labels: {$(label ': ')}}
rules:
EOF
}

# It handles Secrets and StatefulSets only in its own namespace, the only one in which it looks for a Prometheus.
operator_rights() {
    account "$OPERATOR"
    cat << EOF
  - apiGroups: [monitoring.coreos.com]
    resources: [servicemonitors, podmonitors, probes, prometheusrules]
    verbs: [get, list, watch]
  - {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
  - {apiGroups: [""], resources: [events], verbs: [create, patch]}
  - {apiGroups: [storage.k8s.io], resources: [storageclasses], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: $OPERATOR, namespace: $NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: $OPERATOR}
subjects: [{kind: ServiceAccount, name: $OPERATOR, namespace: $NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: $OPERATOR, namespace: $NAMESPACE}
rules:
  - apiGroups: [monitoring.coreos.com]
    resources: [prometheuses, prometheuses/status, prometheuses/finalizers]
    verbs: [get, list, watch, update, patch]
  - {apiGroups: [apps], resources: [statefulsets], verbs: [get, list, watch, create, update, patch, delete]}
  - {apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch, create, update, patch, delete]}
  - {apiGroups: [""], resources: [services, services/finalizers, endpoints], verbs: [get, create, update, delete]}
  - {apiGroups: [""], resources: [pods], verbs: [list, delete]}
EOF
}

operator() {
    cat << EOF
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: $OPERATOR, namespace: $NAMESPACE, labels: &labels {app.kubernetes.io/name: $OPERATOR}}
spec:
  replicas: 1
  selector: {matchLabels: *labels}
  strategy: {type: Recreate}
  template:
    metadata: {labels: *labels, annotations: {plimsoll.dev/image: "$(image_sum "$OPERATOR_IMAGE")"}}
    spec:
      serviceAccountName: $OPERATOR
      enableServiceLinks: false
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: operator
          image: $OPERATOR_IMAGE
          imagePullPolicy: IfNotPresent
          command: [/bin/$OPERATOR]
          args:
            - --prometheus-config-reloader=$RELOADER_IMAGE
            - --config-reloader-cpu-limit=0
            - --prometheus-instance-namespaces=$NAMESPACE
          ports: [{name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 2}
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          resources: {requests: {cpu: 20m, memory: 64Mi}, limits: {memory: 256Mi}}
EOF
}

prometheus_rights() {
    account prometheus
    cat << EOF
  - {apiGroups: [""], resources: [services, pods], verbs: [get, list, watch]}
  - {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
EOF
}

# Short intervals, so that tests wait little. By default, its operator checks only every 15 s whether it has started.
prometheus() {
    cat << EOF
---
apiVersion: monitoring.coreos.com/v1
kind: Prometheus
metadata: {name: $NAME, namespace: $NAMESPACE}
spec:
  image: $PROMETHEUS_IMAGE
  version: $PROMETHEUS_VERSION
  imagePullPolicy: IfNotPresent
  podMetadata: {annotations: {plimsoll.dev/image: "$(image_sum "$PROMETHEUS_IMAGE" "$RELOADER_IMAGE")"}}
  replicas: 1
  serviceAccountName: prometheus
  serviceDiscoveryRole: EndpointSlice
  scrapeInterval: 2s
  scrapeTimeout: 2s
  evaluationInterval: 2s
  retention: 6h
  storage: {emptyDir: {sizeLimit: 1Gi}}
  serviceMonitorSelector: {}
  serviceMonitorNamespaceSelector: {}
  podMonitorSelector: {}
  podMonitorNamespaceSelector: {}
  ruleSelector: {}
  ruleNamespaceSelector: {}
  securityContext: {runAsNonRoot: true, runAsUser: 65534, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
  resources: {requests: {cpu: 50m, memory: 128Mi}, limits: {memory: 512Mi}}
  containers: [{name: prometheus, startupProbe: {periodSeconds: 1, failureThreshold: 60}}]
---
apiVersion: v1
kind: Service
metadata: {name: prometheus, namespace: $NAMESPACE, labels: {app.kubernetes.io/name: prometheus-$NAME}}
spec:
  selector: {prometheus: $NAME}
  ports: [{name: web, port: 9090, targetPort: web}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: prometheus, namespace: $NAMESPACE}
spec:
  selector: {matchLabels: {app.kubernetes.io/name: prometheus-$NAME}}
  endpoints: [{port: web}]
EOF
}
