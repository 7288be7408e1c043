//! Limits of tenants, and deletion of a tenant, over HTTP.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::live::{LiveServer, until};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use plumb_server::{ListenOptions, ServerOptions, TenantLimits, Tokens};
use serde_json::Value;
use ureq::http::Response;

const EXPORT: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// A file in the directory of tests.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A server with limits from a file, which is returned.
fn limited(name: &str, limits: &str) -> (LiveServer, PathBuf) {
    let path = file(&format!("{name}.limits"), limits);
    let tenants = Some(TenantLimits::read(&path).unwrap());
    (LiveServer::start(name, ServerOptions { tenants, ..ServerOptions::default() }), path)
}

fn loopback() -> ListenOptions {
    ListenOptions::new("127.0.0.1:0".parse().unwrap())
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder().http_status_as_error(false).build().into()
}

fn send(server: &LiveServer, tenant: &str, path: &str, kind: &str, body: &[u8]) -> Response<ureq::Body> {
    let request = agent().post(format!("{}{path}", server.url())).header("X-Scope-OrgID", tenant);
    request.header("Content-Type", kind).send(body).unwrap()
}

/// 100 KB of folded stacks.
fn large() -> Vec<u8> {
    (0..10_000).map(|number| format!("f{number:05} 1\n")).collect::<String>().into_bytes()
}

fn push_large(server: &LiveServer, tenant: &str) -> Response<ureq::Body> {
    send(server, tenant, "/ingest?name=shop.cpu&sampleRate=100", "text/plain", &large())
}

#[test]
fn a_tenant_beyond_its_rate_is_refused_until_it_has_waited() {
    let (server, path) = limited("tenants-rate", "* rate=1K\nfree rate=none\n");
    assert_eq!(push_large(&server, "slow").status(), 200);
    let mut refused = push_large(&server, "slow");
    let after: u64 = refused.headers()["Retry-After"].to_str().unwrap().parse().unwrap();
    let body: Value = serde_json::from_str(&refused.body_mut().read_to_string().unwrap()).unwrap();
    assert_eq!((refused.status().as_u16(), &body["code"]), (429, &"resource_exhausted".into()));
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("slow") && message.contains("1024 bytes") && (1..=91).contains(&after),
        "{message}"
    );
    // The other protocols refuse alike, and gRPC says when to send again.
    let connect = send(&server, "slow", "/push.v1.PusherService/Push", "application/json", b"{}");
    let over_http = send(&server, "slow", "/v1development/profiles", "application/json", b"{}");
    assert_eq!((connect.status().as_u16(), over_http.status().as_u16()), (429, 429));
    let grpc = send(&server, "slow", EXPORT, "application/grpc", &[0; 5]);
    let header = |name: &str| grpc.headers()[name].to_str().unwrap();
    assert_eq!(header("grpc-status"), "8");
    let details = STANDARD_NO_PAD.decode(header("grpc-status-details-bin")).unwrap();
    assert!(String::from_utf8_lossy(&details).contains("google.rpc.RetryInfo"));
    // Other tenants are not touched; queries are not limited.
    for tenant in ["free", "free", "other"] {
        assert_eq!(push_large(&server, tenant).status(), 200);
    }
    assert_eq!(server.get("slow", "/api/v1/services"), r#"["shop"]"#);
    let counted = format!(r#"plumb_tenant_refused_bytes_total{{tenant="slow"}} {}"#, large().len() + 9);
    let metrics = server.get_of_all("/metrics");
    assert!(metrics.contains(&counted), "{metrics}");
    assert!(!server.get("free", "/metrics").contains("tenant=\"slow\""));
    // A wrong file changes nothing, a new one does at once.
    std::fs::write(&path, "* rate=fast\n").unwrap();
    server.reloader.reload();
    assert_eq!(push_large(&server, "slow").status(), 429);
    std::fs::write(&path, "* rate=1M\n").unwrap();
    server.reloader.reload();
    until("the tenant has waited", || (push_large(&server, "slow").status() == 200).then_some(()));
}

#[test]
fn retention_and_size_are_of_a_tenant() {
    let (server, path) = limited("tenants-quota", "brief retention=1h\nsmall max_size=1\n");
    let maintain = || {
        for path in ["/api/v1/admin/flush", "/api/v1/admin/compact?due=true"] {
            assert_eq!(server.post("any", path, ""), 200);
        }
    };
    let services = |tenant: &str| server.get(tenant, "/api/v1/services?from=now-48h");
    for tenant in ["brief", "small", "free"] {
        server.push(tenant, "old", "main;f 5\n", 7200);
    }
    maintain();
    for tenant in ["brief", "small", "free"] {
        server.push(tenant, "new", "main;f 5\n", 0);
    }
    assert_eq!(services("small"), r#"["new"]"#);
    maintain();
    assert_eq!(["brief", "small", "free"].map(services), [r#"["new"]"#, "[]", r#"["new","old"]"#]);
    let metrics = server.get_of_all("/metrics");
    assert!(metrics.contains("plumb_tenant_block_bytes{tenant=\"free\"} "), "{metrics}");
    // New limits count from the next run on; a wrong file is refused.
    std::fs::write(&path, "free retention=0h\n").unwrap();
    server.reloader.reload();
    maintain();
    assert_eq!(services("free"), r#"["new","old"]"#);
    std::fs::write(&path, "* retention=1h\n").unwrap();
    server.reloader.reload();
    maintain();
    assert_eq!(["brief", "free"].map(services), [r#"["new"]"#; 2]);
}

fn delete(server: &LiveServer, headers: &[(&str, &str)]) -> u16 {
    let mut request = agent().delete(format!("{}/api/v1/tenant", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.call().unwrap().status().as_u16()
}

/// Copies a store as a killed server leaves it.
fn killed(name: &str) -> PathBuf {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            let (path, target) = (entry.path(), to.join(entry.file_name()));
            if path.is_dir() { copy(&path, &target) } else { _ = std::fs::copy(&path, &target).unwrap() }
        }
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = folder.join(format!("{name}-killed"));
    _ = std::fs::remove_dir_all(&target);
    copy(&folder.join(name), &target);
    target
}

#[test]
fn a_deleted_tenant_is_answered_nowhere_and_does_not_come_back() {
    let name = "tenants-deleted";
    let server = LiveServer::start(name, ServerOptions::default());
    for tenant in ["shop", "mail"] {
        server.push(tenant, "api", "main;f 5\n", 60);
    }
    assert_eq!(server.post("any", "/api/v1/admin/flush", ""), 200);
    for tenant in ["shop", "mail"] {
        server.push(tenant, "web", "main;g 5\n", 30);
    }
    let paths = ["/api/v1/services", "/api/v1/selection", "/api/v1/findings?from=now-1h", "/api/v1/labels"];
    let before = paths.map(|path| server.get("shop", path));
    assert!(before[1].contains("\"samples\":10"), "{}", before[1]);
    assert_eq!(delete(&server, &[]), 400, "no tenant is named");
    assert_eq!(delete(&server, &[("X-Scope-OrgID", "../shop")]), 400);
    assert_eq!(server.get("shop", paths[0]), before[0]);
    assert_eq!(delete(&server, &[("X-Scope-OrgID", "shop")]), 204);
    let check = |server: &LiveServer, shop: &str| {
        assert_eq!(server.get("shop", paths[0]), shop);
        assert_eq!(server.get("mail", paths[0]), r#"["api","web"]"#);
        assert!(!server.get("shop", "/metrics").contains("plumb_finding{"));
    };
    check(&server, "[]");
    for path in &paths[1..] {
        let answer = server.get("shop", path);
        assert!(
            !answer.contains("api") && !answer.contains("web") && !answer.contains("\"f\""),
            "{path}: {answer}"
        );
    }
    check(&LiveServer::open(killed(name), ServerOptions::default(), loopback()), "[]");
    server.push("shop", "again", "main;f 5\n", 10);
    check(&LiveServer::open(killed(name), ServerOptions::default(), loopback()), r#"["again"]"#);
    drop(server);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    check(&LiveServer::open(folder, ServerOptions::default(), loopback()), r#"["again"]"#);
}

#[test]
fn only_an_administrator_deletes_and_only_the_tenant_of_the_token() {
    let [reader, writer, own, all] =
        ["reader-0123456789", "writer-0123456789", "admins-0123456789", "alladm-0123456789"];
    let lines = format!("{reader} read shop\n{writer} write\n{own} admin shop\n{all} admin\n");
    let tokens = Some(Tokens::read(file("tenants.tokens", &lines)).unwrap());
    let server = LiveServer::start("tenants-tokens", ServerOptions { tokens, ..ServerOptions::default() });
    let bearer = |token: &str| format!("Bearer {token}");
    for tenant in ["shop", "mail"] {
        let url = format!("{}/ingest?name=api.cpu&sampleRate=100", server.url());
        let request =
            agent().post(url).header("X-Scope-OrgID", tenant).header("Authorization", bearer(writer));
        assert_eq!(request.send("main;f 5\n").unwrap().status(), 200);
    }
    let services = |tenant: &str| {
        let request =
            agent().get(format!("{}/api/v1/services", server.url())).header("X-Scope-OrgID", tenant);
        request.header("Authorization", bearer(all)).call().unwrap().body_mut().read_to_string().unwrap()
    };
    let delete = |token: &str, tenant: &str| {
        delete(&server, &[("Authorization", &bearer(token)), ("X-Scope-OrgID", tenant)])
    };
    assert_eq!(self::delete(&server, &[("X-Scope-OrgID", "shop")]), 401);
    assert_eq!([reader, writer].map(|token| delete(token, "shop")), [403, 403]);
    assert_eq!(["shop", "mail"].map(services), [r#"["api"]"#; 2]);
    // A token's tenant comes before the header.
    assert_eq!(delete(own, "mail"), 204);
    assert_eq!(["shop", "mail"].map(services), ["[]", r#"["api"]"#]);
    assert_eq!(delete(all, "mail"), 204);
    assert_eq!(services("mail"), "[]");
}
