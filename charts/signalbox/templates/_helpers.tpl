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
app.kubernetes.io/instance: {{ .root.Release.Name }}
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
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
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
