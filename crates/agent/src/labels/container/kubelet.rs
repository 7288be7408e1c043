//! Facts in the kubelet's log directories about a container without a runtime file, because it ended or its files are elsewhere.
//!
//! Source: the kubelet makes `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/` for each pod until the pod is deleted, and for each container a link
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` (pkg/kubelet/kuberuntime: BuildPodLogsDirectory, legacyLogSymlink). None of the names
//! contains an underscore.
//!
//! File names are untrusted: a name that is not understood is ignored.

use std::path::Path;

use super::super::relabel::Attributes;

/// Directories with links to the logs of containers, and with the logs of pods.
const CONTAINERS: &str = "var/log/containers";
const PODS: &str = "var/log/pods";

/// Attributes of a container, by its id and its pod's UID.
pub(super) fn read_below(root: &Path, id: &str, pod_uid: Option<&str>) -> Attributes {
    of_link(root, id).or_else(|| of_pod(root, pod_uid?)).unwrap_or_default()
}

fn of_link(root: &Path, id: &str) -> Option<Attributes> {
    let end = format!("-{id}.log");
    let name = find(&root.join(CONTAINERS), |name| name.ends_with(&end))?;
    let mut parts = name.strip_suffix(&end)?.split('_');
    let (pod, namespace, container) = (parts.next()?, parts.next()?, parts.next()?);
    Some(attributes([pod, namespace, container]))
}

fn of_pod(root: &Path, uid: &str) -> Option<Attributes> {
    let end = format!("_{uid}");
    let folder = find(&root.join(PODS), |name| name.ends_with(&end))?;
    let (namespace, pod) = folder.strip_suffix(&end)?.split_once('_')?;
    let mut containers = std::fs::read_dir(root.join(PODS).join(&folder)).into_iter().flatten().flatten();
    // If there are several, the container is unknown.
    let only = containers.next().filter(|_| containers.next().is_none()).map(|only| only.file_name());
    let container = only.and_then(|only| only.into_string().ok()).unwrap_or_default();
    Some(attributes([pod, namespace, &container]))
}

fn find(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let names = std::fs::read_dir(directory).ok()?.flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).find(|name| is_wanted(name))
}

fn attributes(values: [&str; 3]) -> Attributes {
    let names = ["k8s.pod.name", "k8s.namespace.name", "container.name"];
    names
        .into_iter()
        .zip(values)
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
