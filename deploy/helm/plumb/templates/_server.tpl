{{- define "plumb.server.labels" -}}
{{ include "plumb.labels" . }}
app.kubernetes.io/component: server
{{- end }}

{{- define "plumb.server.selector" -}}
{{ include "plumb.selector" . }}
app.kubernetes.io/component: server
{{- end }}

{{- define "plumb.server.podMetadata" -}}
labels:
  {{- include "plumb.server.labels" . | nindent 2 }}
  {{- with .Values.server.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.server.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* "queries" or "pushes": values.yaml, server.readiness. */ -}}
{{- define "plumb.server.readiness" -}}
{{- $readiness := .Values.server.readiness | default (ternary "pushes" "queries" (gt (int .Values.server.replicas) 1)) -}}
{{- if not (has $readiness (list "queries" "pushes")) -}}
{{- fail (printf "server.readiness is %q: write queries or pushes" $readiness) -}}
{{- end -}}
{{ $readiness }}
{{- end }}

{{- define "plumb.server.account" -}}
{{- if .Values.server.serviceAccount.name -}}
{{ .Values.server.serviceAccount.name }}
{{- else if .Values.server.serviceAccount.annotations -}}
{{ .Release.Name }}-server
{{- end -}}
{{- end }}

{{- define "plumb.server.args" -}}
- serve
- --no-agent
- --listen=0.0.0.0:4041
{{- if .Values.server.bucket.url }}
- --store={{ .Values.server.bucket.url }}
- --wal=/var/lib/plumb/wal
- --advertise=https://$(POD_NAME).{{ .Release.Name }}-server-peers.{{ .Release.Namespace }}.svc:4041
- --ca-cert=/etc/plumb/tls/ca.crt
{{- else }}
- --store=/var/lib/plumb/store
{{- end }}
- --tls-cert=/etc/plumb/tls/tls.crt
- --tls-key=/etc/plumb/tls/tls.key
- --tokens=/etc/plumb/tokens/tokens
- --retention={{ .Values.server.retention }}
- --max-size={{ .Values.server.maxSize }}
{{- if .Values.server.tenants }}
- --tenants=/etc/plumb/tenants/tenants
{{- end }}
{{- with .Values.server.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "plumb.server.env" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with .Values.server.bucket }}
- name: AWS_REGION
  value: {{ .region | quote }}
{{- if .endpoint }}
- name: AWS_ENDPOINT_URL
  value: {{ .endpoint | quote }}
{{- end }}
{{- if .allowHttp }}
- name: AWS_ALLOW_HTTP
  value: "true"
{{- end }}
{{- if .secret }}
{{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ . }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.server.bucket.secret }}
      key: {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "plumb.server.container" -}}
name: server
image: {{ include "plumb.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
args:
  {{- include "plumb.server.args" . | nindent 2 }}
{{- if .Values.server.bucket.url }}
env:
  {{- include "plumb.server.env" . | nindent 2 }}
{{- end }}
ports:
  - name: https
    containerPort: 4041
startupProbe:
  httpGet: {path: /ready, port: https, scheme: HTTPS}
  periodSeconds: 2
  failureThreshold: 150
readinessProbe:
  httpGet: {path: {{ ternary "/ready/push" "/ready" (eq (include "plumb.server.readiness" .) "pushes") }}, port: https, scheme: HTTPS}
  periodSeconds: 5
livenessProbe:
  tcpSocket: {port: https}
  periodSeconds: 20
{{- if gt (int .Values.server.replicas) 1 }}
# Clients turn to the others before this one stops.
lifecycle:
  preStop:
    sleep: {seconds: 5}
{{- end }}
resources:
  {{- toYaml .Values.server.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: store
    mountPath: /var/lib/plumb
  - name: tmp
    mountPath: /tmp
  - name: tls
    mountPath: /etc/plumb/tls
    readOnly: true
  - name: tokens
    mountPath: /etc/plumb/tokens
    readOnly: true
  {{- if .Values.server.tenants }}
  - name: tenants
    mountPath: /etc/plumb/tenants
    readOnly: true
  {{- end }}
{{- end }}

{{- define "plumb.server.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: 512Mi
- name: tls
  secret:
    secretName: {{ .Values.tlsSecret }}
    items:
      - key: tls.crt
        path: tls.crt
      - key: tls.key
        path: tls.key
      {{- if .Values.server.bucket.url }}
      - key: ca.crt
        path: ca.crt
      {{- end }}
- name: tokens
  secret:
    secretName: {{ .Values.tokensSecret }}
    defaultMode: 0440
    items:
      - key: tokens
        path: tokens
{{- if .Values.server.tenants }}
- name: tenants
  configMap:
    name: {{ .Release.Name }}-server-tenants
{{- end }}
{{- end }}

{{- define "plumb.server.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .Values.server.storage.className }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.server.storage.size }}
{{- end }}

{{- /* The pod, without the volume "store". */ -}}
{{- define "plumb.server.pod" -}}
automountServiceAccountToken: false
{{- with include "plumb.server.account" . }}
serviceAccountName: {{ . }}
{{- end }}
enableServiceLinks: false
terminationGracePeriodSeconds: 60
affinity:
  {{- include "plumb.nodeAffinity" . | nindent 2 }}
{{- if gt (int .Values.server.replicas) 1 }}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "plumb.server.selector" $ | nindent 8 }}
  {{- end }}
{{- end }}
{{- with .Values.server.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.server.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
containers:
  - {{ include "plumb.server.container" . | nindent 4 | trim }}
volumes:
  {{- include "plumb.server.volumes" . | nindent 2 }}
{{- end }}
