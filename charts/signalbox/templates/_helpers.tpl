{{/*
Names are fixed, not made from the release's name: one cluster can have one Signalbox, and a
second release fails on the names instead of handling every TrainJob twice.
*/}}

{{/* Labels of every object. Takes a dict of root and component. */}}
{{- define "signalbox.labels" -}}
{{ include "signalbox.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels that select the pods of a component. Takes a dict of root and component. */}}
{{- define "signalbox.selectorLabels" -}}
app.kubernetes.io/name: signalbox
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* What the pods of both components have in common. Takes a dict of root and component. */}}
{{- define "signalbox.podSpec" -}}
{{- $values := get .root.Values .component -}}
serviceAccountName: signalbox-{{ .component }}
# Both commands find the API server by the token.
automountServiceAccountToken: true
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What the containers of both components have in common, apart from arguments, ports and
volumes. Takes a dict of root and component. */}}
{{- define "signalbox.container" -}}
{{- $values := get .root.Values .component -}}
name: {{ .component }}
image: {{ printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  {{- if ($values.resources | default dict).limits | default dict | dig "memory" "" }}
  # The garbage collector works harder before the container is killed for its memory.
  - name: MEMORY_LIMIT
    valueFrom:
      resourceFieldRef:
        resource: limits.memory
  {{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: probes
  initialDelaySeconds: 10
  periodSeconds: 20
readinessProbe:
  httpGet:
    path: /readyz
    port: probes
  periodSeconds: 5
{{- with $values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Arguments that both commands take. Takes the root. */}}
{{- define "signalbox.args" -}}
- --log-level={{ .Values.log.level }}
- --log-format={{ .Values.log.format }}
- --health-probe-bind-address=:8081
{{- if .Values.metrics.port }}
- --metrics-bind-address=:{{ .Values.metrics.port | int }}
{{- else }}
- --metrics-bind-address=0
{{- end }}
{{- if .Values.pprof.enabled }}
- --pprof-bind-address=localhost:6060
{{- end }}
{{- end }}

{{/* Ports that both containers have. Takes the root. */}}
{{- define "signalbox.ports" -}}
- name: probes
  containerPort: 8081
{{- with .Values.metrics.port }}
- name: metrics
  containerPort: {{ . | int }}
{{- end }}
{{- end }}

{{/* What all webhooks have in common. Takes a dict of root and path. */}}
{{- define "signalbox.webhook" -}}
admissionReviewVersions: [v1]
clientConfig:
  service:
    name: signalbox-webhook
    namespace: {{ .root.Release.Namespace | quote }}
    path: {{ .path }}
    port: 443
  {{- with .root.Values.certificates.caBundle }}
  caBundle: {{ . }}
  {{- end }}
timeoutSeconds: {{ .root.Values.webhook.timeoutSeconds }}
sideEffects: None
matchPolicy: Equivalent
namespaceSelector:
  {{- include "signalbox.namespaceSelector" .root | nindent 2 }}
{{- end }}

{{/* Selects the namespaces that Signalbox takes care of: all of this holds of them. Takes the
root. */}}
{{- define "signalbox.namespaceSelector" -}}
{{- with .Values.webhook.namespaceSelector.matchLabels -}}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{ end -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- concat (list .Release.Namespace "kube-system") .Values.webhook.excludedNamespaces | uniq | toYaml | nindent 6 }}
  {{- with .Values.webhook.namespaceSelector.matchExpressions }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Annotations of both webhook configurations. Takes the root. */}}
{{- define "signalbox.configurationAnnotations" -}}
{{- $annotations := .Values.webhook.configurationAnnotations }}
{{- if .Values.certificates.certManager.enabled }}
{{- $annotations = merge (dict "cert-manager.io/inject-ca-from" (printf "%s/signalbox-webhook" .Release.Namespace)) $annotations }}
{{- end }}
{{- with $annotations }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* Name of the Secret with a certificate that the webhook does not make itself; empty when it
does. Takes the root. */}}
{{- define "signalbox.certificateSecret" -}}
{{- if .Values.certificates.certManager.enabled }}signalbox-webhook-tls{{ else }}{{ .Values.certificates.existingSecret }}{{ end }}
{{- end }}

{{/* What becomes of a write that JobSets need the webhook for while no pod answers. Takes the
root. */}}
{{- define "signalbox.jobSetFailurePolicy" -}}
{{- .Values.webhook.jobSetFailurePolicy | default .Values.webhook.failurePolicy }}
{{- end }}

{{/* The same for writes of a TrainJob's status. Takes the root. */}}
{{- define "signalbox.statusFailurePolicy" -}}
{{- .Values.webhook.statusFailurePolicy | default .Values.webhook.failurePolicy }}
{{- end }}

{{/* What becomes of disruptions of runtimes in use. Takes the root. */}}
{{- define "signalbox.runtimesInUse" -}}
{{- if .Values.runtimes.guard }}{{ .Values.runtimes.inUse }}{{ else }}Allow{{ end }}
{{- end }}

{{/* Labels and annotations of the pods of a component. Takes a dict of root and component. */}}
{{- define "signalbox.podMetadata" -}}
{{- $values := get .root.Values .component -}}
labels:
  {{- include "signalbox.selectorLabels" . | nindent 2 }}
  {{- with $values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* When a write of a TrainJob concerns the webhooks. Takes the root. */}}
{{- define "signalbox.trainJobConditions" -}}
# Evaluated in the API server, so that writes where nothing is at stake (labels, finalizers)
# do not depend on the webhook. Every field is read as optional: an error here would refuse
# the write. A list where an object should be can still make one, but that the API server
# refuses by the schema of TrainJobs. A list of one value gives it a name.
- name: lifecycle-at-stake
  expression: >-
    request.operation == 'CREATE' ||
    (object.?spec.?suspend.orValue(false) == true) != (oldObject.?spec.?suspend.orValue(false) == true) ||
    object.?spec.?activeDeadlineSeconds != oldObject.?spec.?activeDeadlineSeconds ||
    ['resumed-at', 'runtime-source', 'runtime-revision', 'runtime-snapshot', 'active-deadline-seconds',
    'active-deadline-source', 'ttl-seconds-after-finished'].exists(name,
    object.metadata.?annotations[?'lifecycle.trainer.kubeflow.org/' + name] !=
    oldObject.metadata.?annotations[?'lifecycle.trainer.kubeflow.org/' + name]) ||
    (object.?spec.?runtimePatches != oldObject.?spec.?runtimePatches &&
    [object.?spec.?runtimePatches.orValue([])].exists(patches, type(patches) == list && patches.exists(patch, type(patch) == map &&
    [patch.?trainingRuntimeSpec.?template.?metadata.?annotations.orValue({})].exists(annotations, type(annotations) == map &&
    annotations.exists(key, key.startsWith('lifecycle.trainer.kubeflow.org/'))))))
{{- end }}

{{/* In CEL, the spec of the template of an object; {} where there is none or one of them is no
object. Takes the object in CEL. */}}
{{- define "signalbox.templateSpec" -}}
[{{ . }}].map(o, type(o) == map, o.?template.orValue(null)).map(o, type(o) == map, o.?spec.orValue(null)).filter(o, type(o) == map)[?0].orValue({})
{{- end }}

{{/* The user name of Trainer's controller, as its Deployment in the cluster says or else as
Trainer is released; empty when its early enforcement is not to be corrected. Takes the root. */}}
{{- define "signalbox.trainerUser" -}}
{{- if .Values.trainer.correctEarlyDeadlines }}
{{- $account := .Values.trainer.serviceAccount }}
{{- if not $account }}
{{- range (lookup "apps/v1" "Deployment" "" "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- if and (eq (get $labels "app.kubernetes.io/part-of") "kubeflow") (eq (get $labels "app.kubernetes.io/component") "manager") (hasSuffix "-controller-manager" .metadata.name) (contains "trainer" (printf "%s %s" .metadata.name (get $labels "app.kubernetes.io/name"))) }}
{{- $account = printf "%s/%s" .metadata.namespace (.spec.template.spec.serviceAccountName | default "default") }}
{{- end }}
{{- end }}
{{- end }}
{{- $account = $account | default "kubeflow-system/kubeflow-trainer-controller-manager" }}
{{- printf "system:serviceaccount:%s" ($account | replace "/" ":") }}
{{- end }}
{{- end }}

{{/* The user name of Kueue's controller, as its Deployment in the cluster says or else as Kueue
is released; empty when its dry runs are not to be answered. With Kueue's chart every name can be
another, but for that of the chart. Takes the root. */}}
{{- define "signalbox.kueueUser" -}}
{{- if and .Values.snapshots.enabled .Values.kueue.showSnapshots }}
{{- $account := .Values.kueue.serviceAccount }}
{{- if not $account }}
{{- range (lookup "apps/v1" "Deployment" "" "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- if and (eq (get $labels "control-plane") "controller-manager") (or (eq (get $labels "app.kubernetes.io/name") "kueue") (regexMatch "^kueue-v?[0-9]" (get $labels "helm.sh/chart"))) }}
{{- $account = printf "%s/%s" .metadata.namespace (.spec.template.spec.serviceAccountName | default "default") }}
{{- end }}
{{- end }}
{{- end }}
{{- $account = $account | default "kueue-system/kueue-controller-manager" }}
{{- printf "system:serviceaccount:%s" ($account | replace "/" ":") }}
{{- end }}
{{- end }}

{{/* What is off that is on by default, a line each. Takes the root. */}}
{{- define "signalbox.off" -}}
{{- $off := list }}
{{- if not .Values.snapshots.enabled }}
{{- $off = append $off "snapshots.enabled: TrainJobs run on what Trainer makes of their runtime" }}
{{- else if not .Values.snapshots.gate }}
{{- $off = append $off "snapshots.gate: JobSets start whatever content of the runtime they were built from" }}
{{- end }}
{{- if not .Values.policies.enabled }}
{{- $off = append $off "policies.enabled: LifecyclePolicies mean nothing" }}
{{- end }}
{{- if not .Values.ttl.enabled }}
{{- $off = append $off "ttl.enabled: finished TrainJobs are not removed" }}
{{- end }}
{{- if not .Values.runtimes.guard }}
{{- $off = append $off "runtimes.guard: runtimes may have clocks, and be broken or deleted while in use" }}
{{- else if eq .Values.runtimes.inUse "Allow" }}
{{- $off = append $off "runtimes.inUse is Allow: runtimes may be broken or deleted while in use" }}
{{- end }}
{{- if not (include "signalbox.kueueUser" .) }}
{{- $off = append $off "kueue.showSnapshots: Kueue stops a TrainJob for an edit of its runtime" }}
{{- end }}
{{- if not (include "signalbox.trainerUser" .) }}
{{- $off = append $off "trainer.correctEarlyDeadlines: what Trainer ends too early stays ended" }}
{{- end }}
{{- range $off }}
  - {{ . }}
{{- end }}
{{- end }}
