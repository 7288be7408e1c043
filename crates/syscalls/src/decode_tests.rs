//! Formatting of arguments: known bytes yield known text, and arbitrary bytes are handled safely.

use crate::{Abi, CallEnd, Outcome, Piece, Signature, SystemCall, number};

/// Calls as the kernel describes them: one for each form of memory, and those with arguments that depend on each other.
const CALLS: [(&str, &str); 20] = [
    ("openat", "int dfd,const char * filename,int flags,umode_t mode"),
    ("read", "unsigned int fd,char * buf,size_t count"),
    ("execve", "const char * filename,const char *const * argv,const char *const * envp"),
    ("fstat", "unsigned int fd,struct stat * statbuf"),
    ("statx", "int dfd,const char * filename,unsigned flags,unsigned int mask,struct statx * buffer"),
    ("poll", "struct pollfd * ufds,unsigned int nfds,int timeout_msecs"),
    ("connect", "int fd,struct sockaddr * uservaddr,int addrlen"),
    ("recvmsg", "int fd,struct user_msghdr * msg,unsigned int flags"),
    ("writev", "unsigned long fd,const struct iovec * vec,unsigned long vlen"),
    ("select", "int n,fd_set * inp,fd_set * outp,fd_set * exp,struct __kernel_old_timeval * tvp"),
    ("rt_sigaction", "int sig,const struct sigaction * act,struct sigaction * oact,size_t sigsetsize"),
    ("rt_sigprocmask", "int how,sigset_t * nset,sigset_t * oset,size_t sigsetsize"),
    ("wait4", "pid_t upid,int * stat_addr,int options,struct rusage * ru"),
    ("clone3", "struct clone_args * uargs,size_t size"),
    ("epoll_wait", "int epfd,struct epoll_event * events,int maxevents,int timeout"),
    ("setsockopt", "int fd,int level,int optname,char * optval,int optlen"),
    ("uname", "struct new_utsname * name"),
    ("futex", "u32 * uaddr,int op,u32 val,const struct __kernel_timespec * utime,u32 * uaddr2,u32 val3"),
    (
        "prlimit64",
        "pid_t pid,unsigned int resource,const struct rlimit64 * new_rlim,struct rlimit64 * old_rlim",
    ),
    ("fcntl", "unsigned int fd,unsigned int cmd,unsigned long arg"),
];

fn signature(name: &str) -> Signature {
    let (_, fields) = CALLS.iter().find(|(known, _)| *known == name).expect("it is in the list");
    let lines: Vec<String> =
        fields.split(',').map(|field| format!("\tfield:{field};\toffset:16;\tsize:8;")).collect();
    Signature::new(name, &lines.join("\n"), 32)
}

fn call<'a>(name: &str, args: [u64; 6], result: i64, pieces: Vec<Piece<'a>>) -> SystemCall<'a> {
    let abi = Abi::NATIVE;
    SystemCall {
        begin_ns: 1,
        end_ns: 2,
        pid: 7,
        tid: 7,
        comm: b"x",
        abi,
        number: number(abi, name).unwrap_or(0),
        args,
        end: CallEnd::Returned(Outcome::of(result)),
        is_late: false,
        is_shown: true,
        pieces,
    }
}

/// Formats a call: its arguments and its result.
fn said(signature: &Signature, call: &SystemCall<'_>) -> String {
    let mut name_of = |fd: i32, out: &mut String| out.push_str(&format!("<{fd}>"));
    let mut words = Vec::new();
    signature.arguments(call, &mut name_of, |name, value| words.push(format!("{name}: {value}")));
    let mut end = String::new();
    signature.end(call, &mut name_of, &mut end);
    format!("{} = {end}", words.join(", "))
}

fn with(name: &str, args: [u64; 6], result: i64, pieces: &[(usize, &[u8])]) -> String {
    let piece = |&(take, bytes)| Piece { take, is_cut: false, bytes };
    let signature = signature(name);
    said(&signature, &call(name, args, result, pieces.iter().map(piece).collect()))
}

fn words<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn known_bytes_give_known_words() {
    let at = -100_i64 as u64;
    let opened = with("openat", [at, 1, libc::O_CREAT as u64 | 1, 0o100644, 0, 0], 3, &[(0, b"/x\n")]);
    assert_eq!(opened, r#"dfd: AT_FDCWD, filename: "/x\n", flags: O_WRONLY|O_CREAT, mode: 0100644 = 3<3>"#);
    assert_eq!(with("read", [3, 0x10, 9, 0, 0, 0], 0, &[]), r#"fd: 3<3>, buf: "", count: 9 = 0"#);
    assert_eq!(with("read", [3, 0x10, 9, 0, 0, 0], -9, &[]), "fd: 3<3>, buf: 0x10, count: 9 = EBADF");
    let list = with("execve", [1, 2, 3, 0, 0, 0], 0, &[(0, b"/bin/sh"), (1, b"sh\0-c\0\0")]);
    assert_eq!(list, r#"filename: "/bin/sh", argv: ["sh", "-c", ""], envp: 0x3 = 0"#);
    let polled: Vec<u8> = [5_u32.to_ne_bytes(), [1, 0, 1, 0]].concat();
    let polled = with("poll", [1, 1, -1_i64 as u64, 0, 0, 0], 1, &[(1, &polled)]);
    assert_eq!(polled, "ufds: [{fd: 5<5>, events: POLLIN, revents: POLLIN}], nfds: 1, timeout_msecs: -1 = 1");
    let parts = with("writev", [1, 1, 2, 0, 0, 0], 5, &[(0, &words([0x1000, 2, 0x2000, 3]))]);
    assert_eq!(
        parts,
        "fd: 1<1>, vec: [{iov_base: 0x1000, iov_len: 2}, {iov_base: 0x2000, iov_len: 3}], vlen: 2 = 5"
    );
    let mask = with("rt_sigprocmask", [0, 1, 0, 8, 0, 0], 0, &[(0, &words([1 << 1 | 1 << 14]))]);
    assert_eq!(mask, "how: SIG_BLOCK, nset: [INT TERM], oset: NULL, sigsetsize: 8 = 0");
    let all = with("rt_sigprocmask", [2, 1, 0, 8, 0, 0], 0, &[(0, &words([!(1 << 8)]))]);
    assert_eq!(all, "how: SIG_SETMASK, nset: ~[KILL], oset: NULL, sigsetsize: 8 = 0");
    let status = |status: i32| with("wait4", [9, 1, 0, 0, 0, 0], 9, &[(0, &status.to_ne_bytes())]);
    assert_eq!(status(0x300), "upid: 9, stat_addr: [exited with 3], options: 0, ru: NULL = 9");
    assert_eq!(status(9), "upid: 9, stat_addr: [killed by SIGKILL], options: 0, ru: NULL = 9");
    let not_yet = with("wait4", [9, 0x10, 1, 0, 0, 0], 0, &[(0, &52_i32.to_ne_bytes())]);
    assert_eq!(not_yet, "upid: 9, stat_addr: 0x10, options: WNOHANG, ru: NULL = 0");
    let limit = with("prlimit64", [0, 7, 0, 1, 0, 0], 0, &[(1, &words([1024, u64::MAX]))]);
    assert_eq!(
        limit,
        "pid: 0, resource: RLIMIT_NOFILE, new_rlim: NULL, old_rlim: {rlim_cur: 1024, rlim_max: RLIM_INFINITY} = 0"
    );
}

#[test]
fn arguments_depend_on_others() {
    let futex = |op: u64| with("futex", [0x10, op, 2, 0x20, 0x30, 4], 0, &[(0, &words([1, 5]))]);
    assert_eq!(
        futex(128),
        "uaddr: 0x10, op: FUTEX_WAIT|FUTEX_PRIVATE_FLAG, val: 2, utime: {tv_sec: 1, tv_nsec: 5} = 0"
    );
    assert_eq!(futex(129), "uaddr: 0x10, op: FUTEX_WAKE|FUTEX_PRIVATE_FLAG, val: 2 = 0");
    let fcntl = |cmd: i32, result| with("fcntl", [3, cmd as u64, 1, 0, 0, 0], result, &[]);
    assert_eq!(fcntl(libc::F_SETFD, 0), "fd: 3<3>, cmd: F_SETFD, arg: FD_CLOEXEC = 0");
    assert_eq!(fcntl(libc::F_GETFL, 2), "fd: 3<3>, cmd: F_GETFL = O_RDWR");
    assert_eq!(fcntl(libc::F_DUPFD, 7), "fd: 3<3>, cmd: F_DUPFD, arg: 1 = 7<7>");
    let option = with(
        "setsockopt",
        [3, libc::SOL_SOCKET as u64, libc::SO_REUSEADDR as u64, 1, 4, 0],
        0,
        &[(0, &[1, 0, 0, 0])],
    );
    assert_eq!(option, "fd: 3<3>, level: SOL_SOCKET, optname: SO_REUSEADDR, optval: [1], optlen: 4 = 0");
}

#[test]
fn calls_of_other_programs_have_no_memory() {
    let signature = signature("openat");
    let piece = Piece { take: 0, is_cut: false, bytes: b"/x" };
    let mut other = call("openat", [3, 0x1234, 0, 0, 0, 0], -2, vec![piece]);
    other.abi = Abi::COMPAT;
    assert!(
        said(&signature, &other).contains("filename: 0x1234"),
        "structures of 32-bit programs are other ones"
    );
}

/// Arbitrary contents and lengths of copied memory.
#[test]
fn any_bytes_do_no_harm() {
    let mut state = 1_u64;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 11
    };
    for (name, _) in CALLS {
        let signature = signature(name);
        for round in 0..400 {
            let lengths = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 55, 56, 64, 100, 144, 256, 1024];
            let bytes: Vec<Vec<u8>> = (0..6)
                .map(|_| {
                    let length = lengths[next() as usize % lengths.len()];
                    (0..length).map(|_| if round % 3 == 0 { 0xff } else { next() as u8 }).collect()
                })
                .collect();
            let pieces =
                bytes.iter().enumerate().map(|(take, bytes)| Piece { take, is_cut: take % 2 == 0, bytes });
            let mut args = [0; 6];
            args.iter_mut()
                .for_each(|arg| *arg = if next() % 2 == 0 { next() % 64 } else { next() << 11 | next() });
            let result = [0, 1, -1, -4095, i64::MIN, i64::MAX, 1 << 20][next() as usize % 7];
            let text = said(&signature, &call(name, args, result, pieces.collect()));
            assert!(!text.chars().any(char::is_control), "{name}: {text:?}");
        }
    }
}
