{{/* The objects of deploy/k8s, read from the folder files, and what values change in them. */}}

{{- define "semmem.labels" -}}
app.kubernetes.io/name: semmem
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* A name in the files, by release. Call with (list . "semmem-..."). */}}
{{- define "semmem.name" -}}
{{- regexReplaceAll "^semmem" (index . 1) (index . 0).Release.Name -}}
{{- end }}

{{/* An object of the files with its name, labels and selectors by release, as YAML. Call with (list . object). */}}
{{- define "semmem.object" -}}
{{- $root := index . 0 -}}
{{- $metadata := (index . 1).metadata -}}
{{- $_ := set $metadata "name" (include "semmem.name" (list $root $metadata.name)) -}}
{{- $_ := set $metadata "labels" (merge (include "semmem.labels" $root | fromYaml) ($metadata.labels | default dict)) -}}
{{- $instance := "app.kubernetes.io/instance: " -}}
{{- toYaml (index . 1) | replace (print $instance "semmem\n") (print $instance ($root.Release.Name | quote) "\n") -}}
{{- end }}

{{/* The same of a file. Call with (list . "files/..."). */}}
{{- define "semmem.file" -}}
{{- include "semmem.object" (list (index . 0) (index . 1 | (index . 0).Files.Get | fromYaml)) -}}
{{- end }}

{{/* semmem's configuration: the layout's text, or that with values.config on top. */}}
{{- define "semmem.config" -}}
{{- $text := printf "files/%s/config.yaml" .Values.layout | .Files.Get -}}
{{- $text = replace "allowed_hosts: [semmem," (printf "allowed_hosts: [%s," .Release.Name) $text -}}
{{- $told := dict "deployment" dict -}}
{{- if eq .Values.layout "shared" -}}
{{- $told = dict "deployment" (dict "replicas" .Values.autoscaling.minReplicas) -}}
{{- end -}}
{{- $whole := mergeOverwrite (fromYaml $text) (deepCopy .Values.config) $told -}}
{{- if eq (toYaml $whole) (fromYaml $text | toYaml) -}}
{{- $text -}}
{{- else -}}
{{- toYaml $whole -}}
{{- end -}}
{{- end }}

{{- define "semmem.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The container's environment: names and secrets as values say. Call with (list . entries). */}}
{{- define "semmem.env" -}}
{{- $secrets := (index . 0).Values.secrets -}}
{{- $named := dict "semmem-admin" $secrets.admin "semmem-milvus" $secrets.milvus "semmem-journal" $secrets.journal "semmem-valkey" $secrets.valkey "semmem-fence" $secrets.fence -}}
{{- range index . 1 }}
{{- $reference := .valueFrom.secretKeyRef }}
{{- $secret := index $named $reference.name }}
{{- $_ := set $reference "name" $secret.name }}
{{- $_ := set $reference "key" $secret.key }}
{{- end }}
{{- toYaml (concat (index . 1) (index . 0).Values.extraEnv) -}}
{{- end }}

{{/* The workload of the layout, before values of the reader: a StatefulSet with a volume, or a Deployment without. */}}
{{- define "semmem.workload" -}}
{{- $workload := .Files.Get "files/base/stateful-set.yaml" | fromYaml -}}
{{- $container := index $workload.spec.template.spec.containers 0 -}}
{{- if eq .Values.layout "single" -}}
{{- $single := .Files.Get "files/single/embedded-store.yaml" | fromYaml -}}
{{- $patch := index $single.spec.template.spec.containers 0 -}}
{{- $_ := set $container "resources" (mergeOverwrite $container.resources $patch.resources) -}}
{{- $kept := list -}}
{{- range $container.env }}
{{- if ne .name (index $patch.env 0).name }}{{ $kept = append $kept . }}{{ end }}
{{- end -}}
{{- $_ := set $container "env" $kept -}}
{{- $_ := set $workload.spec "volumeClaimTemplates" $single.spec.volumeClaimTemplates -}}
{{- else -}}
{{- $many := .Files.Get "files/many-replicas/pods.yaml" | fromYaml -}}
{{- $pod := $many.spec.template.spec -}}
{{- $_ := set $workload "kind" $many.kind -}}
{{- $_ := set $workload.spec "strategy" $many.spec.strategy -}}
{{- range list "serviceName" "volumeClaimTemplates" "replicas" }}{{ $_ := unset $workload.spec . }}{{ end -}}
{{- $_ := set $workload.spec.template.spec "topologySpreadConstraints" $pod.topologySpreadConstraints -}}
{{- $_ := set $workload.spec.template.spec "volumes" (concat $pod.volumes $workload.spec.template.spec.volumes) -}}
{{- $_ := set $container "env" (concat (index $pod.containers 0).env $container.env) -}}
{{- end -}}
{{- toYaml $workload -}}
{{- end }}
