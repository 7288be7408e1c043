//! What the kubelet's log folders say of a container whose runtime has no file of it: because it ended, or keeps its files elsewhere.
//!
//! Source: the kubelet makes `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/` for each pod until that is deleted, and for each container a link
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` (pkg/kubelet/kuberuntime: BuildPodLogsDirectory, legacyLogSymlink). No name in them has an
//! underscore.
//!
//! Names are others' choice: what is not understood says nothing.

use std::path::Path;

use super::super::relabel::Attributes;

/// Links to containers' logs, and folders of pods.
const CONTAINERS: &str = "var/log/containers";
const PODS: &str = "var/log/pods";

/// What they say of a container, by its id and its pod's UID.
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
    // Of several nobody says which it is.
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
