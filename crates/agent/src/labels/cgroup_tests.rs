//! Paths as runtimes and systemd write them.

use super::*;

const A: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const UID: &str = "5d9f2c1e-8a77-4c0b-9b1e-2f6d3a4b5c6d";

fn facts(line: &str) -> CgroupFacts {
    CgroupFacts::parse(&line.replace("ID", A))
}

/// Checks the runtime, id, pod and stable path of a line.
fn check(line: &str, runtime: Option<&str>, pod: Option<&str>, path: &str) {
    let line = line.replace("POD_", &UID.replace('-', "_")).replace("POD", UID);
    let facts = facts(&line);
    let expected = (runtime, Some(A.to_owned()), pod.map(str::to_owned), path.to_owned());
    assert_eq!((facts.runtime, facts.container_id, facts.pod_uid, facts.path), expected, "{line}");
}

#[test]
fn containers_of_each_runtime() {
    check("0::/system.slice/docker-ID.scope", Some("docker"), None, "/system.slice");
    check("0::/docker/ID", Some("docker"), None, "/docker");
    check("0::/docker/ID/init.scope", Some("docker"), None, "/docker");
    check("0::/default/ID", Some("containerd"), None, "/default");
    check("0::/system.slice/nerdctl-ID.scope", Some("containerd"), None, "/system.slice");
    check("0::/machine.slice/libpod-ID.scope/container", Some("podman"), None, "/machine.slice");
    check("0::/libpod_parent/libpod-ID", Some("podman"), None, "/libpod_parent");
    check(
        "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
        Some("podman"),
        None,
        "/user.slice/user-1000.slice/user@1000.service/user.slice",
    );
    // In its own cgroup namespace, the agent sees other groups above itself.
    check("0::/../../docker/ID", Some("docker"), None, "/docker");
    let ecs = facts("0::/ecs/0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef-1234567890");
    assert_eq!(ecs.runtime, Some("ecs"));
    let lxc = facts("0::/lxc.payload.web/system.slice/nginx.service");
    assert_eq!((lxc.container_name.as_deref(), lxc.unit.as_deref()), (Some("web"), Some("nginx.service")));
}

#[test]
fn pods_of_each_driver() {
    let slices = "/kubepods.slice/kubepods-burstable.slice";
    check(
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podPOD_.slice/cri-containerd-ID.scope",
        Some("containerd"),
        Some(UID),
        slices,
    );
    check(
        "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podPOD_.slice/crio-ID.scope",
        Some("cri-o"),
        Some(UID),
        slices,
    );
    check(
        "0::/kubepods.slice/kubepods-podPOD_.slice/docker-ID.scope",
        Some("docker"),
        Some(UID),
        "/kubepods.slice",
    );
    check("0::/kubepods/besteffort/podPOD/ID", None, Some(UID), "/kubepods/besteffort");
    check(
        "11:cpu,cpuacct:/kubepods/podPOD/ID\n1:name=systemd:/kubepods/podPOD/ID",
        None,
        Some(UID),
        "/kubepods",
    );
    check(
        "0::/system.slice/containerd.service/kubepods-besteffort-podPOD_.slice:cri-containerd:ID",
        Some("containerd"),
        Some(UID),
        "/system.slice/containerd.service",
    );
    let uid = "0123456789abcdef0123456789abcdef";
    let of_static = facts(&format!("0::/kubepods/burstable/pod{uid}/{A}"));
    assert_eq!(of_static.pod_uid.as_deref(), Some(uid));
}

#[test]
fn units_of_systemd() {
    let unit = |line: &str| {
        let facts = facts(line);
        (facts.unit, facts.path)
    };
    let some = |unit: &str, path: &str| (Some(unit.to_owned()), path.to_owned());
    let none = |path: &str| (None, path.to_owned());
    assert_eq!(unit("0::/system.slice/nginx.service"), some("nginx.service", "/system.slice/nginx.service"));
    assert_eq!(
        unit(r"0::/system.slice/system-my\x2dapp.slice/my\x2dapp@a\x2fb.service"),
        some("my-app@a/b.service", "/system.slice/system-my-app.slice/my-app@a/b.service")
    );
    assert_eq!(
        unit("0::/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service"),
        some("pipewire.service", "/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service")
    );
    // A service manages the groups below its unit.
    assert_eq!(
        unit("0::/system.slice/foo.service/worker"),
        some("foo.service", "/system.slice/foo.service/worker")
    );
    assert_eq!(unit("0::/user.slice/user-0.slice/session-12.scope"), none("/user.slice/user-0.slice"));
    assert_eq!(unit("0::/system.slice/run-u12.service"), none("/system.slice"));
    assert_eq!(unit("0::/system.slice/run-p12-i13.service"), none("/system.slice"));
    assert_eq!(unit("0::/system.slice/run-r0123456789abcdef0123456789abcdef.service"), none("/system.slice"));
    assert_eq!(unit("0::/system.slice/run-parts.service").0.as_deref(), Some("run-parts.service"));
    assert_eq!(unit("0::/init.scope"), none("/init.scope"));
    assert_eq!(unit("0::/"), none("/"));
    assert_eq!(unit("0::/\n1:name=systemd:/system.slice/a.service").0.as_deref(), Some("a.service"));
}

#[test]
fn whatever_is_not_understood_is_nothing() {
    for text in [
        "",
        "x",
        "0:",
        "0::",
        "::",
        "0::/\\x",
        "0::/\\x2",
        "0::/pod/",
        "0::/docker-.scope",
        "0::/crio-conmon-ID.scope",
    ] {
        let facts = facts(text);
        assert_eq!((facts.unit, facts.container_id, facts.pod_uid), (None, None, None), "{text}");
    }
}

#[test]
fn what_starts_containers_is_no_service_of_what_runs_in_them() {
    assert!(facts("0::/system.slice/containerd.service").is_of_runtime());
    for other in
        ["0::/system.slice/nginx.service", "0::/kubepods/podPOD/ID", "0::/system.slice/docker-ID.scope"]
    {
        assert!(!facts(other).is_of_runtime(), "{other}");
    }
}
