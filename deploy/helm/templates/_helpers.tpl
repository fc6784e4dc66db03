{{/* A manifest of deploy/kubernetes in the namespace of the release: list CONTEXT FILE. */}}
{{- define "troupe.manifest" -}}
{{ (index . 0).Files.Get (index . 1) | replace "namespace: troupe-system" (print "namespace: " (index . 0).Release.Namespace) }}
{{- end }}

{{- define "troupe.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The configuration of the agents. An empty address of the API server means the address in kube-public/cluster-info. */}}
{{- define "troupe.config" -}}
{{- $config := mergeOverwrite (.Files.Get "base/agent.yaml" | fromYaml) .Values.config }}
{{- if .Values.hostRoute.interface }}{{ $_ := set $config "hostRoute" (pick .Values.hostRoute "interface" "gateway" "source" "nodePorts") }}{{ end }}
{{- $kubernetes := $config.kubernetes }}
{{- if not (or $kubernetes.apiServer $kubernetes.kubeconfig (hasPrefix "files:" ($kubernetes.source | default ""))) }}
{{- with lookup "v1" "ConfigMap" "kube-public" "cluster-info" | dig "data" "kubeconfig" "" }}
{{- $_ := set $kubernetes "apiServer" (first (fromYaml .).clusters).cluster.server }}
{{- end }}
{{- end }}
{{- toYaml $config }}
{{- end }}
