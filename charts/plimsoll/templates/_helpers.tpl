{{- define "plimsoll.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* The name of all objects. Some get an ending of up to 22 characters, and a label takes 63. */}}
{{- define "plimsoll.fullname" -}}
{{- $name := include "plimsoll.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "plimsoll.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "plimsoll.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: plimsoll
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* Labels that select the operator's pod. A Deployment cannot change its selector: never change these. */}}
{{- define "plimsoll.selectorLabels" -}}
app.kubernetes.io/name: {{ include "plimsoll.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{/* The namespace of the helpers that drop caches, and the name of their objects. */}}
{{- define "plimsoll.cachesName" -}}
{{- printf "%s-caches" (include "plimsoll.fullname" .) }}
{{- end }}

{{/* Labels that select the helpers' pods. A DaemonSet cannot change its selector: never change these. */}}
{{- define "plimsoll.cachesSelectorLabels" -}}
app.kubernetes.io/name: {{ include "plimsoll.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: caches
{{- end }}

{{/* The namespace of the runs' teardown records, with their keyrings and Jobs. */}}
{{- define "plimsoll.teardownName" -}}
{{- printf "%s-teardown" (include "plimsoll.fullname" .) }}
{{- end }}

{{/* The namespace of the helper that runs kube-burner, and the name of its objects. */}}
{{- define "plimsoll.kubeBurnerName" -}}
{{- printf "%s-kube-burner" (include "plimsoll.fullname" .) }}
{{- end }}

{{/* Labels that select the helper's pod. A Deployment cannot change its selector: never change these. */}}
{{- define "plimsoll.kubeBurnerSelectorLabels" -}}
app.kubernetes.io/name: {{ include "plimsoll.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: kube-burner
{{- end }}

{{- define "plimsoll.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "plimsoll.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The operator's user name at the API server. */}}
{{- define "plimsoll.operatorUser" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "plimsoll.serviceAccountName" . }}
{{- end }}

{{/* Name and labels of an admission policy or its binding; takes a list of the chart's context and the policy's ending. */}}
{{- define "plimsoll.policyMetadata" -}}
{{- $context := index . 0 -}}
metadata:
  name: {{ include "plimsoll.fullname" $context }}-{{ index . 1 }}
  labels: {{- include "plimsoll.labels" $context | nindent 4 }}
{{- end }}

{{/* The binding of an admission policy; takes the same list. Cluster-scoped objects are always included. */}}
{{- define "plimsoll.policyBinding" -}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
{{ include "plimsoll.policyMetadata" . }}
spec:
  policyName: {{ include "plimsoll.fullname" (index . 0) }}-{{ index . 1 }}
  validationActions: [Deny]
{{- with index . 2 }}
  matchResources:
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: In, values: {{ toJson . }}}
{{- end }}
{{- end }}

{{/* The users that the policies about the objects of runs do not bind, as a CEL list. */}}
{{- define "plimsoll.exemptUsers" -}}
{{- $users := list (include "plimsoll.operatorUser" .) }}
{{- if .Values.kubeBurner.enabled }}
{{- $helper := include "plimsoll.kubeBurnerName" . }}
{{- $users = append $users (printf "system:serviceaccount:%s:%s" $helper $helper) }}
{{- end }}
{{- concat $users .Values.admission.exemptUsers | toJson }}
{{- end }}

{{/* Kubernetes' garbage collector, which removes owners, as a CEL list: with an account of its own or without. */}}
{{- define "plimsoll.garbageCollector" -}}
['system:serviceaccount:kube-system:generic-garbage-collector', 'system:kube-controller-manager']
{{- end }}

{{/* An image; takes a list of the chart's context and the path of the image's values. */}}
{{- define "plimsoll.image" -}}
{{- $context := index . 0 }}
{{- $path := index . 1 }}
{{- $image := $context.Values }}
{{- range splitList "." $path }}
{{- $image = index $image . }}
{{- end }}
{{- with $image }}
{{- if not .repository }}
{{- $name := trimSuffix "image" $path | trimSuffix "." | default "operator" | kebabcase }}
{{- fail (printf "\n\n%s.repository is empty, and no image of Plimsoll is published yet: set it to the repository from which your nodes pull, such as registry.example.org/team/plimsoll-%s. `make images` prints the values for the images that it builds.\n" $path $name) }}
{{- end }}
{{- if .digest }}
{{- printf "%s@%s" .repository .digest }}
{{- else }}
{{- printf "%s:%s" .repository (default $context.Chart.AppVersion .tag) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plimsoll.podSecurityContext" -}}
runAsNonRoot: true
{{- if not .Values.podSecurity.platformAssignsUser }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "plimsoll.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Nodes with Linux and these labels. */}}
{{- define "plimsoll.nodeSelector" -}}
nodeSelector: {{- merge (dict "kubernetes.io/os" "linux") . | toYaml | nindent 2 }}
{{- end }}

{{/* A mesh's container would keep a pod that runs one command running for ever. */}}
{{- define "plimsoll.noSidecarLabel" -}}
sidecar.istio.io/inject: "false"
{{- end }}
{{- define "plimsoll.noSidecarAnnotation" -}}
linkerd.io/inject: disabled
{{- end }}

{{/* Where a pod of the chart may run, and how its image is pulled. */}}
{{- define "plimsoll.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{ include "plimsoll.nodeSelector" .Values.nodeSelector }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* A pod that runs one command of the operator's image once; takes a list of the context, a ServiceAccount and arguments. */}}
{{- define "plimsoll.commandPod" -}}
{{- $context := index . 0 }}
serviceAccountName: {{ index . 1 }}
automountServiceAccountToken: true
restartPolicy: Never
enableServiceLinks: false
securityContext: {{- include "plimsoll.podSecurityContext" $context | nindent 2 }}
{{- with include "plimsoll.placement" $context | trim }}
{{ . }}
{{- end }}
containers:
  - name: plimsoll
    image: {{ include "plimsoll.image" (list $context "image") }}
    imagePullPolicy: {{ $context.Values.image.pullPolicy }}
    args: {{- toYaml (index . 2) | nindent 6 }}
    resources:
      requests: {cpu: 50m, memory: 64Mi}
      limits: {memory: 256Mi}
    securityContext: {{- include "plimsoll.containerSecurityContext" $context | nindent 6 }}
    volumeMounts: [{name: tmp, mountPath: /tmp}]
volumes: [{name: tmp, emptyDir: {sizeLimit: 64Mi}}]
{{- end }}

{{/* Fail if the cluster does not serve a kind of the Prometheus Operator; takes a list of the context, the value and the kind. */}}
{{- define "plimsoll.requireKind" -}}
{{- $served := printf "monitoring.coreos.com/v1/%s" (index . 2) }}
{{- if not ((index . 0).Capabilities.APIVersions.Has $served) }}
{{- fail (printf "\n\n%s is true, and this cluster does not serve %s: install the Prometheus Operator first, or leave it false. Without a cluster, as with `helm template`, add --api-versions %s.\n" (index . 1) $served $served) }}
{{- end }}
{{- end }}

{{/* The operator's rights in every namespace whose runs and suites it reconciles. */}}
{{- define "plimsoll.runRules" -}}
# Suites create runs, and delete old ones.
- apiGroups: [plimsoll.dev]
  resources: [benchmarkruns]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [plimsoll.dev]
  resources: [benchmarksuites]
  verbs: [get, list, watch]
- apiGroups: [plimsoll.dev]
  resources: [benchmarkruns/status, benchmarksuites/status, benchmarkresults/status]
  verbs: [patch]
# To own objects that block a run's or a suite's deletion, as the admission plugin OwnerReferencesPermissionEnforcement
# requires.
- apiGroups: [plimsoll.dev]
  resources: [benchmarkruns/finalizers, benchmarksuites/finalizers]
  verbs: [update]
# Watched for metrics.
- apiGroups: [plimsoll.dev]
  resources: [benchmarkresults]
  verbs: [get, list, watch, create]
# What is not labelled like an object of a run is neither listed nor watched; what has a known name is read by it.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, watch, create, patch]
# Session secrets are created and never read.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
# Jobs create the pods.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, create, delete]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, create, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create]
{{- end }}

{{/* The limits that are set, as JSON. */}}
{{- define "plimsoll.limits" -}}
{{- $limits := dict }}
{{- range $name, $value := .Values.limits }}
{{- if $value }}
{{- $limits = set $limits $name $value }}
{{- end }}
{{- end }}
{{- toJson $limits }}
{{- end }}

{{/* The namespaces whose runs it reconciles, as JSON; empty for all. Its own is always included: `helm test` creates a run there. */}}
{{- define "plimsoll.namespaces" -}}
{{- if .Values.watchNamespaces }}
{{- prepend .Values.watchNamespaces .Release.Namespace | uniq | toJson }}
{{- else -}}
[]
{{- end }}
{{- end }}
