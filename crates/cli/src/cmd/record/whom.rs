//! Whom to record: from the options to a target.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::{Result, bail};
use plumb_target::{Launch, Program, Target};

use super::Scope;

/// The target that the options name.
pub(super) fn target(args: &Scope) -> Result<Target> {
    if args.all {
        return Ok(Target::Machine);
    }
    if let Some(path) = &args.cgroup {
        return Ok(Target::Cgroup(path.clone()));
    }
    if let Some(pid) = args.tree {
        return Ok(Target::Tree(pid));
    }
    if let Some(name) = &args.name {
        let program = Program::new(name.as_bytes());
        return if args.wait { Ok(Target::Awaited(program)) } else { running(&program, name) };
    }
    if !args.pid.is_empty() {
        return Ok(Target::Processes(args.pid.clone()));
    }
    if args.command.is_empty() {
        bail!(
            "nothing to record: name a command, or processes (-p PID, --tree PID, --name PROGRAM, --cgroup PATH), or everything \
             (-a)"
        );
    }
    launch(&args.command).map(Target::Command)
}

/// The processes that run a program now.
fn running(program: &Program, name: &OsStr) -> Result<Target> {
    let runs = |&pid: &u32| {
        let by_comm = plumb_process::comm(pid, pid).is_some_and(|comm| program.is_comm(&comm));
        by_comm || plumb_process::executable(pid).is_some_and(|path| program.is_executable(&path))
    };
    let own = std::process::id();
    let mut pids: Vec<u32> =
        plumb_process::pids().into_iter().filter(runs).filter(|&pid| pid != own).collect();
    if pids.is_empty() {
        bail!("no process runs {}; to wait for one: --wait", name.display());
    }
    pids.sort_unstable();
    Ok(Target::Processes(pids))
}

/// The command of these words, which may begin with variables to set.
pub(crate) fn launch(words: &[OsString]) -> Result<Launch> {
    let variables = words.iter().map_while(|word| variable(word));
    let environment: Vec<(OsString, OsString)> = variables.collect();
    let mut words = words.iter().skip(environment.len()).cloned().peekable();
    if !environment.is_empty() {
        words.next_if(|word| word == "--");
    }
    let Some(program) = words.next() else { bail!("no command after the variables") };
    Ok(Launch { program, arguments: words.collect(), environment })
}

/// The name and value of a word like `VAR=x`.
fn variable(word: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = word.as_bytes();
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let (name, value) = (&bytes[..equals], &bytes[equals + 1..]);
    let is_name = !name.first()?.is_ascii_digit()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    is_name.then(|| (OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_look_like_a_shells() {
        let variable = |word: &str| variable(OsStr::new(word));
        assert_eq!(variable("A_1=x=y"), Some(("A_1".into(), "x=y".into())));
        assert_eq!(variable("A="), Some(("A".into(), "".into())));
        assert_eq!(variable("./x=y"), None);
        assert_eq!(variable("1A=x"), None);
        assert_eq!(variable("=x"), None);
        assert_eq!(variable("make"), None);
    }

    #[test]
    fn who_runs_nothing_of_the_name_is_told_of_wait() {
        let name = OsStr::new("no-such-program-anywhere");
        let error = running(&Program::new(name.as_bytes()), name).expect_err("none runs").to_string();
        assert!(error.contains("--wait"), "{error}");
    }
}
