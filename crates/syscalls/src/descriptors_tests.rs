//! Tracking of descriptors through synthetic calls.

use crate::{Abi, Ask, CallEnd, Descriptors, Outcome, Piece, Signature, SystemCall, number};

/// A lookup that knows one descriptor and one directory.
struct Asked;

impl Ask for Asked {
    fn descriptor(&mut self, _: u32, fd: i32) -> Option<String> {
        (fd == 1).then(|| "/dev/pts/0".to_owned())
    }

    fn folder(&mut self, _: u32) -> Option<String> {
        Some("/here".to_owned())
    }
}

/// Builds a signature from the types and names of a call's arguments.
fn signature(call: &str, fields: &[(&str, &str)]) -> Signature {
    let lines: Vec<String> =
        fields.iter().map(|(c_type, name)| format!("\tfield:{c_type} {name};\toffset:16;")).collect();
    Signature::new(call, &lines.join("\n"), 32)
}

fn call<'a>(name: &str, args: &[u64], result: i64, memory: &'a [u8]) -> SystemCall<'a> {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    SystemCall {
        begin_ns: 0,
        end_ns: 0,
        pid: 7,
        tid: 7,
        comm: b"x",
        abi: Abi::NATIVE,
        number: number(Abi::NATIVE, name).expect("it exists"),
        args: all,
        end: CallEnd::Returned(Outcome::of(result)),
        is_late: false,
        is_shown: true,
        pieces: vec![Piece { take: 0, is_cut: false, bytes: memory }],
    }
}

const AT_FDCWD: u64 = -100_i64 as u64;

fn openat() -> Signature {
    signature(
        "openat",
        &[("int", "dfd"), ("const char *", "filename"), ("int", "flags"), ("umode_t", "mode")],
    )
}

#[test]
fn descriptors_are_followed_from_call_to_call() {
    let mut all = Descriptors::new(Box::new(Asked));
    let none = Signature::default();
    assert_eq!(all.name(7, 1), Some("/dev/pts/0"), "by asking");
    let cloexec = libc::O_CLOEXEC as u64;
    all.apply(&call("openat", &[AT_FDCWD, 1, cloexec], 3, b"x/../y"), &openat());
    assert_eq!(all.name(7, 3), Some("/here/y"));
    all.apply(&call("openat", &[3, 1, 0], 4, b"z"), &openat());
    assert_eq!(all.name(7, 4), Some("/here/y/z"));
    all.apply(&call("openat", &[AT_FDCWD, 1, 0], -2, b"/missing"), &openat());
    all.apply(&call("dup", &[3], 5, b""), &none);
    all.apply(&call("fcntl", &[5, libc::F_DUPFD_CLOEXEC as u64, 9], 9, b""), &none);
    all.apply(&call("clone3", &[0, 0], 8, b""), &none);
    all.apply(&call("close", &[4], 0, b""), &none);
    assert_eq!(all.name(7, 4), None);
    assert_eq!(all.name(8, 4), Some("/here/y/z"), "the child has its own");
    all.apply(&call("execve", &[0], 0, b""), &none);
    assert_eq!(all.name(7, 3), None, "closed by the exec");
    assert_eq!(all.name(7, 9), None, "likewise");
    assert_eq!(all.name(7, 5), Some("/here/y"));
    let mut end = call("exit_group", &[0], 0, b"");
    end.end = CallEnd::ThreadEnded;
    all.apply(&end, &none);
    assert_eq!(all.name(7, 5), None, "another process may have its number");
    assert_eq!(all.name(8, 5), Some("/here/y"));
    all.forget();
    assert_eq!(all.name(8, 5), None);
}

#[test]
fn as_many_processes_as_there_may_be_are_known() {
    let mut all = Descriptors::new(Box::new(Asked));
    for pid in 0..100_000 {
        all.learn(pid, 3, "x".to_owned(), false);
        assert_eq!(all.name(pid, 3), Some("x"));
    }
    assert_eq!(all.name(5, 3), None, "what is too much is forgotten");
}

#[test]
fn sockets_have_addresses() {
    let mut all = Descriptors::new(Box::new(Asked));
    let address =
        [&(libc::AF_INET as u16).to_ne_bytes()[..], &[0, 80, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    let stream = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0];
    let fields = |name| [("int", "fd"), ("struct sockaddr *", name), ("int", "addrlen")];
    all.apply(&call("socket", &stream, 3, b""), &Signature::default());
    assert_eq!(all.name(7, 3), Some("TCP"));
    all.apply(&call("connect", &[3, 1, 16], 0, &address), &signature("connect", &fields("uservaddr")));
    assert_eq!(all.name(7, 3), Some("TCP \u{2192} 10.0.0.1:80"));
    all.apply(&call("socket", &stream, 4, b""), &Signature::default());
    all.apply(&call("bind", &[4, 1, 16], 0, &address), &signature("bind", &fields("umyaddr")));
    assert_eq!(all.name(7, 4), Some("TCP 10.0.0.1:80"));
    let accept = [("int", "fd"), ("struct sockaddr *", "upeer_sockaddr"), ("int *", "upeer_addrlen")];
    all.apply(&call("accept", &[4, 1, 1], 5, &address), &signature("accept", &accept));
    assert_eq!(all.name(7, 5), Some("TCP \u{2190} 10.0.0.1:80"));
}

#[test]
fn any_arguments_do_no_harm() {
    let mut all = Descriptors::new(Box::new(Asked));
    for name in crate::tracked().filter(|name| number(Abi::NATIVE, name).is_some()) {
        for value in [0, 1, u64::MAX, i64::MIN as u64] {
            all.apply(&call(name, &[value; 6], value as i64, b"\xff\0\x02"), &openat());
        }
    }
    let mut out = String::new();
    all.learn(1, 1, "a\nb\u{1b}".to_owned(), false);
    all.write(1, 1, &mut out);
    assert_eq!(out, "<a\u{fffd}b\u{fffd}>", "a terminal is not to be steered by a file's name");
}
