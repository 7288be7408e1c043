//! Facts that a container's runtime stores about it: its name, its image, its pod.
//!
//! Sources: the files in which runtimes keep the state of running containers, each under the container's id: containerd's and CRI-O's OCI
//! configurations with the annotations of the Kubernetes runtime interface (cri/annotations, and CRI-O's pkg/annotations), Docker's `config.v2.json`,
//! Podman's list of containers. They are read below the root of the machine's first process, so that an agent in a container finds them without
//! mounts.
//!
//! Invariant: nothing is used that a container may have inherited from its image, whose labels include those of its base images: an
//! `org.opencontainers.image.version` may be the version of the distribution underneath. Docker keeps the labels of a container and its image in one
//! list, and Podman copies annotations of images. Only keys that a runtime, Kubernetes or Compose sets for each container count.
//!
//! Elsewhere: the container of a process (`cgroup`). File contents are untrusted: anything that is not understood is ignored.

mod kubelet;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::Once;

use serde::Deserialize;

use super::relabel::Attributes;

/// Root directory of the machine.
const ROOT: &str = "/proc/1/root";
/// State directories of containerd below the root: standalone, in k3s and RKE2, in k0s, in MicroK8s.
const CONTAINERD: [&str; 4] =
    ["run/containerd", "run/k3s/containerd", "run/k0s/containerd", "var/snap/microk8s/common/run/containerd"];
/// State directory of CRI-O and Podman.
const STORAGE: &str = "run/containers/storage/overlay-containers";
/// Size limit of a file, in bytes: a containerd configuration with a full seccomp profile has some 50 kB.
const MOST: u64 = 4 << 20;
/// Longest value that becomes a label.
const LONGEST: usize = 500;

/// Annotations that runtimes set in OCI configurations, and the attribute for each.
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
/// Prefix of the annotations that Kubernetes sets as labels of Docker containers (cri-dockerd).
const KUBERNETES: &str = "io.kubernetes.";
/// Label with the number that Compose gives each container. Compose also puts its project and service labels on images that it builds, so these
/// may come from a base image.
const COMPOSE_NUMBER: &str = "com.docker.compose.container-number";

/// An OCI configuration (runtime-spec, config.md).
#[derive(Deserialize)]
struct OciConfig {
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// The relevant part of Docker's `config.v2.json`.
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

/// A container in Podman's list (containers/storage).
#[derive(Deserialize)]
struct PodmanContainer {
    id: String,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    metadata: String,
}

/// Podman's metadata about a container, stored as a string in the list.
#[derive(Deserialize)]
struct PodmanMetadata {
    #[serde(rename = "image-name", default)]
    image: String,
}

/// Returns the attributes that a runtime has for a container, completed from the kubelet's logs. Empty if no runtime knows the container or
/// their files are not readable.
pub(crate) fn read(id: &str, pod_uid: Option<&str>) -> Attributes {
    read_below(Path::new(ROOT), id, pod_uid)
}

fn read_below(root: &Path, id: &str, pod_uid: Option<&str>) -> Attributes {
    let runtimes: [(&str, &dyn Fn() -> Option<Attributes>); 4] = [
        ("containerd", &|| CONTAINERD.iter().find_map(|state| of_containerd(&root.join(state), id))),
        ("docker", &|| {
            of_docker(&read_file(&root.join("var/lib/docker/containers").join(id).join("config.v2.json"))?)
        }),
        ("cri-o", &|| of_oci(&read_file(&root.join(STORAGE).join(id).join("userdata/config.json"))?)),
        ("podman", &|| {
            of_podman(
                &read_file(&root.join("var/lib/containers/storage/overlay-containers/containers.json"))?,
                id,
            )
        }),
    ];
    let mut known = runtimes.into_iter().filter_map(|(runtime, read)| {
        let mut found = read()?;
        found.retain(|_, value| !value.is_empty());
        if found.is_empty() {
            return None;
        }
        found.insert("container.runtime".to_owned(), runtime.to_owned());
        Some(found)
    });
    let mut found = known.next().unwrap_or_default();
    if !found.contains_key("k8s.pod.name") && pod_uid.is_some() {
        for (name, value) in kubelet::read_below(root, id, pod_uid) {
            found.entry(name).or_insert(value);
        }
    }
    found.retain(|_, value| value.len() <= LONGEST);
    found
}

/// Reads the state of a container of Kubernetes, Docker or nerdctl.
fn of_containerd(state: &Path, id: &str) -> Option<Attributes> {
    let tasks = state.join("io.containerd.runtime.v2.task");
    let read = |namespace: &&str| of_oci(&read_file(&tasks.join(namespace).join(id).join("config.json"))?);
    ["k8s.io", "default"].iter().find_map(read)
}

/// Reads a file if it exists. Warns once about missing permissions.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    static REFUSED: Once = Once::new();
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes)) {
        Ok(_) => Some(bytes),
        Err(error) => {
            if error.kind() == ErrorKind::PermissionDenied {
                REFUSED.call_once(|| {
                    tracing::warn!(
                        path = %path.display(),
                        "containers and pods are told by their ids: the files in which the container runtime has their names may not be read; \
                         to read them, run the agent as the user that the runtime has (root)"
                    );
                });
            }
            None
        }
    }
}

fn of_oci(json: &[u8]) -> Option<Attributes> {
    let OciConfig { annotations } = serde_json::from_slice(json).ok()?;
    Some(of_annotations(&annotations, ""))
}

/// Attributes of the annotations whose names start with `prefix`.
fn of_annotations(annotations: &BTreeMap<String, String>, prefix: &str) -> Attributes {
    let known = ANNOTATIONS.iter().filter(|(name, _)| name.starts_with(prefix));
    let known = known.filter_map(|(name, attribute)| {
        annotations.get(*name).map(|value| ((*attribute).to_owned(), value.clone()))
    });
    known.collect()
}

fn of_docker(json: &[u8]) -> Option<Attributes> {
    let DockerConfig { name, config } = serde_json::from_slice(json).ok()?;
    // Labels that Kubernetes set through cri-dockerd, and the Compose service.
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

    const UID: &str = "11111111-2222-3333-4444-555555555555";

    /// Attributes found when one runtime has written one file.
    fn found(path: &str, text: &str) -> Vec<(String, String)> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("plumb-container-{}-{number}", std::process::id()));
        let file = root.join(path.replace("UID", UID).replace("ID", ID));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text.replace("ID", ID)).unwrap();
        let found = read_below(&root, ID, Some(UID));
        std::fs::remove_dir_all(&root).unwrap();
        found.into_iter().collect()
    }

    /// The expected pairs with the runtime added.
    fn pairs(runtime: &str, expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut expected = [expected, &[("container.runtime", runtime)]].concat();
        expected.sort_unstable();
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn each_runtime_says_what_a_container_is() {
        let containerd = r#"{"ociVersion":"1.1.0","process":{"args":["/app"]},"annotations":{
            "io.kubernetes.cri.container-name":"api","io.kubernetes.cri.container-type":"container",
            "io.kubernetes.cri.image-name":"registry.example/shop/api:1.2","io.kubernetes.cri.sandbox-id":"ff",
            "io.kubernetes.cri.sandbox-name":"api-7c5ddbdf54-x2b4k","io.kubernetes.cri.sandbox-namespace":"shop"}}"#;
        let pod = [
            ("container.image.name", "registry.example/shop/api:1.2"),
            ("container.name", "api"),
            ("k8s.namespace.name", "shop"),
            ("k8s.pod.name", "api-7c5ddbdf54-x2b4k"),
        ];
        for state in ["run/containerd", "run/k3s/containerd"] {
            let task = format!("{state}/io.containerd.runtime.v2.task/k8s.io/ID/config.json");
            assert_eq!(found(&task, containerd), pairs("containerd", &pod));
        }
        let crio = r#"{"annotations":{"io.kubernetes.container.name":"api","io.kubernetes.cri-o.ImageName":"registry.example/shop/api:1.2",
            "io.kubernetes.pod.name":"api-7c5ddbdf54-x2b4k","io.kubernetes.pod.namespace":"shop"}}"#;
        let userdata = "run/containers/storage/overlay-containers/ID/userdata/config.json";
        assert_eq!(found(userdata, crio), pairs("cri-o", &pod));
        let docker = r#"{"ID":"ID","Name":"/shop-api-1","Config":{"Image":"shop/api","Labels":{
            "com.docker.compose.project":"shop","com.docker.compose.service":"api","com.docker.compose.container-number":"1"}}}"#;
        let expected = pairs(
            "docker",
            &[
                ("container.image.name", "shop/api"),
                ("container.name", "shop-api-1"),
                ("service.name", "api"),
                ("service.namespace", "shop"),
            ],
        );
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", docker), expected);
        let podman = r#"[{"id":"other","names":["no"]},{"id":"ID","names":["web"],"metadata":"{\"image-name\":\"docker.io/nginx:1\"}"}]"#;
        let expected =
            pairs("podman", &[("container.image.name", "docker.io/nginx:1"), ("container.name", "web")]);
        assert_eq!(found("var/lib/containers/storage/overlay-containers/containers.json", podman), expected);
    }

    /// An image that Compose built on Ubuntu, started without Compose: it carries the labels of its own build and of Ubuntu.
    #[test]
    fn labels_of_an_image_say_nothing_of_a_container() {
        let docker = r#"{"ID":"ID","Name":"/job","Config":{"Image":"shop/api:2.1","Labels":{
            "com.docker.compose.project":"shop","com.docker.compose.service":"base","com.docker.compose.version":"2.29.1",
            "org.opencontainers.image.ref.name":"ubuntu","org.opencontainers.image.version":"24.04","nerdctl/name":"other"}}}"#;
        let expected =
            pairs("docker", &[("container.image.name", "shop/api:2.1"), ("container.name", "job")]);
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", docker), expected);
        // Podman copies the image's annotations into the configuration; its list has what it knows itself.
        let podman = r#"{"annotations":{"org.opencontainers.image.ref.name":"ubuntu","org.opencontainers.image.version":"24.04"}}"#;
        assert_eq!(found("run/containers/storage/overlay-containers/ID/userdata/config.json", podman), []);
        let kubernetes = r#"{"ID":"ID","Name":"/k8s_api_api-0_shop_1_0","Config":{"Image":"shop/api@sha256:12","Labels":{
            "io.kubernetes.container.name":"api","io.kubernetes.pod.name":"api-0","io.kubernetes.pod.namespace":"shop",
            "org.opencontainers.image.version":"24.04"}}}"#;
        let expected = pairs(
            "docker",
            &[
                ("container.image.name", "shop/api@sha256:12"),
                ("container.name", "api"),
                ("k8s.namespace.name", "shop"),
                ("k8s.pod.name", "api-0"),
            ],
        );
        assert_eq!(found("var/lib/docker/containers/ID/config.v2.json", kubernetes), expected);
    }

    /// The case of an ended container, whose runtime keeps no state.
    #[test]
    fn logs_of_the_kubelet_name_a_container_that_no_runtime_knows() {
        let of = |values: [&str; 3]| {
            let names = ["container.name", "k8s.namespace.name", "k8s.pod.name"];
            let pairs = names.iter().zip(values).filter(|(_, value)| !value.is_empty());
            pairs.map(|(name, value)| ((*name).to_owned(), value.to_owned())).collect::<Vec<_>>()
        };
        let whole = of(["run", "shop", "job-1-x2b4k"]);
        assert_eq!(found("var/log/containers/job-1-x2b4k_shop_run-ID.log", ""), whole);
        assert_eq!(found("var/log/pods/shop_job-1-x2b4k_UID/run/0.log", ""), whole);
        assert_eq!(found("var/log/pods/shop_job-1-x2b4k_UID", ""), of(["", "shop", "job-1-x2b4k"]));
        assert_eq!(found("var/log/pods/UID", ""), []);
        assert_eq!(found("var/log/containers/job-ID.log", ""), []);
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
