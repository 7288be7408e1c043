//! Errors for impossible requests are one sentence that says what to do: programs with a missing interpreter, and too little memory.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::spun::{folder, plumb, text};
use plumb_fixtures::{Requirement, needs, skip};

#[test]
fn a_missing_interpreter_is_named() {
    let folder = folder("interpreter");
    let script = folder.join("script");
    std::fs::write(&script, "#!/no/such/shell -e\necho\n").expect("the folder is there");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("it is ours");
    let mut named = 0;
    for command in ["record", "stat", "trace"] {
        let output = plumb(&folder, &[command, "--", "./script"]);
        let said = text(&output.stderr);
        assert!(!output.status.success(), "{command}");
        // A user who may not record or trace gets that error instead.
        if said.contains("/no/such/shell") {
            assert!(said.contains("interpreter") && said.contains("missing"), "{command}: {said}");
            assert_eq!(output.status.code(), Some(126), "{command}: as a shell says it");
            named += 1;
        } else {
            assert!(!said.contains("not found"), "{command}: the file is there: {said}");
        }
        let output = plumb(&folder, &[command, "--", "./no-such-script"]);
        assert!(!output.status.success() && !text(&output.stderr).contains("interpreter"));
    }
    assert!(named > 0 || !needs(Requirement::Perf), "who may record is told of the interpreter");
}

#[test]
fn who_lacks_rights_is_told_what_to_type() {
    let plumb = env!("CARGO_BIN_EXE_plumb");
    // As user nobody; without root this test already runs as another user.
    let said = |arguments: &[&str]| {
        let mut command = Command::new(plumb);
        command.args(arguments).current_dir("/").stdin(Stdio::null()).uid(65534).gid(65534);
        command.output().ok().filter(|output| !output.status.success()).map(|output| text(&output.stderr))
    };
    let recording = std::env::temp_dir().join(format!("plumb-refused-{}.plumb", std::process::id()));
    let Some(recording) = recording.to_str() else { return };
    let Some(off_cpu) = said(&["record", "--off-cpu", "-o", recording, "--", "true"]) else {
        skip(Requirement::Root, "not root, or others may not run what is built here");
        return;
    };
    if off_cpu.contains("CAP_BPF") {
        let typed = format!("\n  do:       sudo {plumb} record --off-cpu -o {recording} -- true\n  or: ");
        assert!(off_cpu.contains(&typed) && off_cpu.contains("\n  without: "), "{off_cpu}");
    }
    let other = said(&["explain", "--full", "-p", "1"]).expect("it is root's");
    if other.contains("not allowed to sample process 1") {
        assert!(other.contains(&format!("\n  do:       sudo {plumb} explain --full -p 1\n")), "{other}");
    }
    let place = said(&["record", "--", "true"]).expect("the folder is root's");
    let named = "cannot write profile.plumb: Permission denied; name another place by -o FILE";
    assert!(place.contains(named), "{place}");
}

/// The kernel removes the events at its exec.
#[test]
fn who_records_a_program_that_gets_rights_is_told_why_there_are_no_samples() {
    let place = std::env::temp_dir().join(format!("plumb-rights-{}", std::process::id()));
    let program = place.join("rights");
    std::fs::create_dir_all(&place).expect("the folder for temporary files can be written");
    plumb_fixtures::copy_program("/bin/sh", &program);
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
    mode(&program, 0o4755).and_then(|()| mode(&place, 0o777)).expect("both are the test's");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    command.args(["record", "-o", "x.plumb", "--"]).arg(&program);
    command.args(["-c", "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"]);
    let output = command.current_dir(&place).stdin(Stdio::null()).uid(65534).gid(65534).output();
    let _ = std::fs::remove_dir_all(&place);
    let Ok(output) = output else {
        return skip(Requirement::Root, "not root, or others may not run what is built here");
    };
    let said = text(&output.stderr);
    if !output.status.success() {
        return skip(Requirement::Unprivileged, format_args!("others may not record: {said}"));
    }
    // If the file system grants no privileges, it is sampled as any other.
    let is_sampled = !said.starts_with("plumb: 0 samples");
    assert!(is_sampled || said.contains("set-user-ID") && said.contains("record it as root"), "{said}");
}

#[test]
fn too_little_memory_is_said_without_a_backtrace() {
    let folder = folder("memory");
    // Half of the input fits into the address space, all of it does not.
    let script = "ulimit -v 400000 && head -c 800000000 /dev/zero | \"$0\" report -";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_plumb")])
        .env("RUST_BACKTRACE", "1")
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .expect("a shell is there");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("out of memory") && said.contains("400000 kB (ulimit -v)"), "{said}");
    assert!(!said.contains("backtrace"), "{said}");
}
