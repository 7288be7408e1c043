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

{{- define "plumb.selector" -}}
app.kubernetes.io/name: plumb
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Only nodes that can run the image. */ -}}
{{- define "plumb.nodeAffinity" -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: kubernetes.io/os
            operator: In
            values: [linux]
          - key: kubernetes.io/arch
            operator: In
            values: [{{ join ", " .Values.image.architectures }}]
{{- end }}
