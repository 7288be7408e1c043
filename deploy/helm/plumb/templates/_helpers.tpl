{{- define "plumb.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "plumb.labels" -}}
app.kubernetes.io/name: plumb
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "plumb.url" -}}
{{ .Values.agent.url | default (printf "https://%s-server.%s.svc:4041" .Release.Name .Release.Namespace) }}
{{- end }}
