//! What a container's runtime wrote of it: its name, its image, the pod that it is of.
//!
//! Sources: the files in which runtimes keep the state of what runs, each by the container's id: containerd's and CRI-O's OCI configurations with the
//! annotations of Kubernetes' runtime interface (cri/annotations, and CRI-O's pkg/annotations), Docker's `config.v2.json`, Podman's list of containers. They are
//! read below the root of the machine's first process, so that an agent in a container finds them without mounts.
//!
//! Invariant: nothing is taken that a container may have from its image, whose labels are also those of the images that it was built on: an
//! `org.opencontainers.image.version` may be the version of the distribution below. Docker has a container's and its image's labels in one list, and
//! Podman copies annotations of images. Only keys that a runtime, Kubernetes or Compose sets for each container count.
//!
//! Not here: which container a process is in (`cgroup`). Contents are others' choice: what is not understood says nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use super::relabel::Attributes;

/// The machine's own root.
const ROOT: &str = "/proc/1/root";
/// Most bytes of a file: a configuration of containerd with a full seccomp profile has some 50 kB.
const MOST: u64 = 4 << 20;
/// Longest value that becomes a label.
const LONGEST: usize = 500;

/// Annotations that runtimes set in OCI configurations, and the attributes that they are.
const ANNOTATIONS: [(&str, &str); 9] = [
    ("io.kubernetes.cri.container-name", "container.name"),
    ("io.kubernetes.cri.image-name", "container.image.name"),
    ("io.kubernetes.cri.sandbox-name", "k8s.pod.name"),
    ("io.kubernetes.cri.sandbox-namespace", "k8s.namespace.name"),
    ("io.kubernetes.cri-o.ImageName", "container.image.name"),
    ("io.kubernetes.container.name", "container.name"),
    ("io.kubernetes.pod.name", "k8s.pod.name"),
    ("io.kubernetes.pod.namespace", "k8s.namespace.name"),
    ("nerdctl/name", "container.name"),
];
/// Those that Kubernetes sets as labels of Docker's containers (cri-dockerd).
const KUBERNETES: &str = "io.kubernetes.";
/// Compose gives containers a number. Of the other labels it puts project and service on images that it builds, too, so that they may be those of an
/// image below.
const COMPOSE_NUMBER: &str = "com.docker.compose.container-number";

/// An OCI configuration (runtime-spec, config.md).
#[derive(Deserialize)]
struct OciConfig {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// What of Docker's `config.v2.json` matters.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DockerConfig {
    #[serde(default)]
    name: String,
    #[serde(default)]
    config: DockerImage,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct DockerImage {
    image: String,
    labels: BTreeMap<String, String>,
}

/// One of Podman's containers (containers/storage).
#[derive(Deserialize)]
struct PodmanContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    metadata: String,
}

/// What Podman notes of a container, as a text in the list.
#[derive(Deserialize)]
struct PodmanMetadata {
    #[serde(rename = "image-name", default)]
    image: String,
}

/// What runtimes say of the container with this id; empty: none of them knows it, or its files may not be read.
pub(crate) fn read(id: &str) -> Attributes {
    read_below(Path::new(ROOT), id)
}

fn read_below(root: &Path, id: &str) -> Attributes {
    let oci = |directory: &str| of_oci(&read_file(&root.join(directory).join(id).join("config.json"))?);
    let containerd = || {
        // Kubernetes', Docker's and nerdctl's.
        let tasks = "run/containerd/io.containerd.runtime.v2.task";
        ["k8s.io", "default"].iter().find_map(|namespace| oci(&format!("{tasks}/{namespace}")))
    };
    let crio = || {
        let directory = root.join("run/containers/storage/overlay-containers").join(id);
        of_oci(&read_file(&directory.join("userdata/config.json"))?)
    };
    let docker =
        || of_docker(&read_file(&root.join("var/lib/docker/containers").join(id).join("config.v2.json"))?);
    let podman = || {
        let list = root.join("var/lib/containers/storage/overlay-containers/containers.json");
        of_podman(&read_file(&list)?, id)
    };
    let found = containerd().or_else(docker).or_else(crio).filter(|found| !found.is_empty());
    let mut found = found.or_else(podman).unwrap_or_default();
    found.retain(|_, value| !value.is_empty() && value.len() <= LONGEST);
    found
}

fn read_file(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn of_oci(json: &[u8]) -> Option<Attributes> {
    let OciConfig { annotations } = serde_json::from_slice(json).ok()?;
    Some(of_annotations(&annotations, ""))
}

/// Those whose names begin so.
fn of_annotations(annotations: &BTreeMap<String, String>, prefix: &str) -> Attributes {
    let known = ANNOTATIONS.iter().filter(|(name, _)| name.starts_with(prefix));
    let known = known.filter_map(|(name, attribute)| {
        annotations.get(*name).map(|value| ((*attribute).to_owned(), value.clone()))
    });
    known.collect()
}

fn of_docker(json: &[u8]) -> Option<Attributes> {
    let DockerConfig { name, config } = serde_json::from_slice(json).ok()?;
    // What Kubernetes gave it by cri-dockerd, and Compose's service.
    let mut found = of_annotations(&config.labels, KUBERNETES);
    found.entry("container.name".to_owned()).or_insert_with(|| name.trim_start_matches('/').to_owned());
    found.insert("container.image.name".to_owned(), config.image);
    if config.labels.contains_key(COMPOSE_NUMBER) {
        let pairs = [("service", "service.name"), ("project", "service.namespace")];
        for (name, attribute) in pairs {
            if let Some(value) = config.labels.get(&format!("com.docker.compose.{name}")) {
                found.insert(attribute.to_owned(), value.clone());
            }
        }
    }
    Some(found)
}

fn of_podman(json: &[u8], id: &str) -> Option<Attributes> {
    let all: Vec<PodmanContainer> = serde_json::from_slice(json).ok()?;
    let one = all.into_iter().find(|one| one.id == id)?;
    let image =
        serde_json::from_str(&one.metadata).map_or_else(|_| String::new(), |data: PodmanMetadata| data.image);
    let name = one.names.into_iter().next().unwrap_or_default();
    let pairs = [("container.name", name), ("container.image.name", image)];
    Some(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    /// What is found where one runtime has written one file.
    fn found(path: &str, text: &str) -> Vec<(String, String)> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("plumb-container-{}-{number}", std::process::id()));
        let file = root.join(path.replace("ID", ID));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text.replace("ID", ID)).unwrap();
        let found = read_below(&root, ID);
        std::fs::remove_dir_all(&root).unwrap();
        found.into_iter().collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_runtime_says_what_a_container_is() {
        let containerd = r#"{"ociVersion":"1.1.0","process":{"args":["/app"]},"annotations":{
            "io.kubernetes.cri.container-name":"api","io.kubernetes.cri.container-type":"container",
            "io.kubernetes.cri.image-name":"registry.example/shop/api:1.2","io.kubernetes.cri.sandbox-id":"ff",
            "io.kubernetes.cri.sandbox-name":"api-7c5ddbdf54-x2b4k","io.kubernetes.cri.sandbox-namespace":"shop"}}"#;
        let pod = pairs(&[
            ("container.image.name", "registry.example/shop/api:1.2"),
            ("container.name", "api"),
            ("k8s.namespace.name", "shop"),
            ("k8s.pod.name", "api-7c5ddbdf54-x2b4k"),
        ]);
        let task = "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json";
        assert_eq!(found(task, containerd), pod);
        let crio = r#"{"annotations":{"io.kubernetes.container.name":"api","io.kubernetes.cri-o.ImageName":"registry.example/shop/api:1.2",
            "io.kubernetes.pod.name":"api-7c5ddbdf54-x2b4k","io.kubernetes.pod.namespace":"shop"}}"#;
        let userdata = "run/containers/storage/overlay-containers/ID/userdata/config.json";
        assert_eq!(found(userdata, crio), pod);
        let docker = r#"{"ID":"ID","Name":"/shop-api-1","Config":{"Image":"shop/api","Labels":{
            "com.docker.compose.project":"shop","com.docker.compose.service":"api","com.docker.compose.container-number":"1"}}}"#;
        let expected = pairs(&[
            ("container.image.name", "shop/api"),
            ("container.name", "shop-api-1"),
            ("service.name", "api"),
            ("service.namespace", "shop"),
        ]);
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", docker), expected);
        let podman = r#"[{"id":"other","names":["no"]},{"id":"ID","names":["web"],"metadata":"{\"image-name\":\"docker.io/nginx:1\"}"}]"#;
        let expected = pairs(&[("container.image.name", "docker.io/nginx:1"), ("container.name", "web")]);
        assert_eq!(found("var/lib/containers/storage/overlay-containers/containers.json", podman), expected);
    }

    /// An image that Compose built on Ubuntu, started without Compose: its labels are those of its own build and of Ubuntu's.
    #[test]
    fn labels_of_an_image_say_nothing_of_a_container() {
        let docker = r#"{"ID":"ID","Name":"/job","Config":{"Image":"shop/api:2.1","Labels":{
            "com.docker.compose.project":"shop","com.docker.compose.service":"base","com.docker.compose.version":"2.29.1",
            "org.opencontainers.image.ref.name":"ubuntu","org.opencontainers.image.version":"24.04","nerdctl/name":"other"}}}"#;
        let expected = pairs(&[("container.image.name", "shop/api:2.1"), ("container.name", "job")]);
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", docker), expected);
        // Podman has annotations of the image in the configuration, and what it knows itself in its list.
        let podman = r#"{"annotations":{"org.opencontainers.image.ref.name":"ubuntu","org.opencontainers.image.version":"24.04"}}"#;
        assert_eq!(found("run/containers/storage/overlay-containers/ID/userdata/config.json", podman), []);
        let kubernetes = r#"{"ID":"ID","Name":"/k8s_api_api-0_shop_1_0","Config":{"Image":"shop/api@sha256:12","Labels":{
            "io.kubernetes.container.name":"api","io.kubernetes.pod.name":"api-0","io.kubernetes.pod.namespace":"shop",
            "org.opencontainers.image.version":"24.04"}}}"#;
        let expected = pairs(&[
            ("container.image.name", "shop/api@sha256:12"),
            ("container.name", "api"),
            ("k8s.namespace.name", "shop"),
            ("k8s.pod.name", "api-0"),
        ]);
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", kubernetes), expected);
    }

    #[test]
    fn what_is_no_state_says_nothing() {
        let task = "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json";
        for text in [
            "",
            "[]",
            "{\"annotations\":7}",
            "{}",
            "{\"annotations\":{\"io.kubernetes.cri.image-name\":\"\"}}",
        ] {
            assert_eq!(found(task, text), [], "{text}");
        }
    }
}
