//! Options that choose the processes to observe, and the target that they name.
//!
//! Invariant: `-p` observes processes in every command; `--pid` filters what was recorded. Elsewhere: following the target (target).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use plumb_target::{Launch, Program, Target};

use super::value;

/// Options that name the target and the duration. Options in the group `target` exclude each other, a command and a file.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
#[command(next_help_heading = "Target")]
pub struct TargetArgs {
    /// Observe these processes with their threads and children, until Ctrl-C or --duration
    #[arg(short = 'p', long, value_name = "PID,...", value_delimiter = ',', group = "target")]
    pub attach: Vec<u32>,

    /// Observe this process and all its descendants, until the last ends, Ctrl-C or --duration
    #[arg(long, value_name = "PID", group = "target")]
    pub tree: Option<u32>,

    /// Observe this cgroup and all cgroups below it, until it is removed, Ctrl-C or --duration
    ///
    /// PATH is a directory, or a name as in /proc/PID/cgroup.
    #[arg(short = 'G', long, value_name = "PATH", group = "target")]
    pub cgroup: Option<PathBuf>,

    /// Observe all processes of this program (name or path) and their children
    #[arg(long, value_name = "PROGRAM", group = "target")]
    pub name: Option<OsString>,

    /// Observe the whole machine, until Ctrl-C or --duration
    #[arg(short, long, group = "target")]
    pub all: bool,

    /// Stop after TIME (10, 30s, 5m), and send SIGTERM to the command and its descendants
    #[arg(long, value_name = "TIME", value_parser = value::seconds)]
    pub duration: Option<Duration>,
}

/// A command to start and observe, in place of a running target: all words from the first that is not an option.
#[derive(clap::Args, Clone, Debug, Default)]
#[group(skip)]
pub struct CommandArgs {
    /// Command to run, after any VAR=VALUE for its environment
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        conflicts_with = "target"
    )]
    pub words: Vec<OsString>,
}

impl TargetArgs {
    /// Whether an option names a target.
    pub fn names_target(&self) -> bool {
        self.all
            || !self.attach.is_empty()
            || self.tree.is_some()
            || self.cgroup.is_some()
            || self.name.is_some()
    }

    /// The options that name the target, as arguments for another command, in which they mean the same. Empty: none was given.
    pub fn words(&self) -> Vec<String> {
        let named = |name: &str, value: &OsStr| vec![name.to_owned(), value.to_string_lossy().into_owned()];
        let pids: Vec<String> = self.attach.iter().map(u32::to_string).collect();
        match self {
            Self { all: true, .. } => vec!["-a".to_owned()],
            Self { cgroup: Some(path), .. } => named("--cgroup", path.as_os_str()),
            Self { tree: Some(pid), .. } => vec!["--tree".to_owned(), pid.to_string()],
            Self { name: Some(name), .. } => named("--name", name),
            _ if pids.is_empty() => Vec::new(),
            _ => vec!["-p".to_owned(), pids.join(",")],
        }
    }

    /// The target that the options name, otherwise the command. `wait`: the program may start later.
    ///
    /// # Errors
    /// No target is named, or no process runs the program.
    pub fn target(&self, wait: bool, command: &[OsString]) -> Result<Target> {
        if self.all {
            return Ok(Target::Machine);
        }
        if let Some(path) = &self.cgroup {
            return Ok(Target::Cgroup(path.clone()));
        }
        if let Some(pid) = self.tree {
            return Ok(Target::Tree(pid));
        }
        if let Some(name) = &self.name {
            let program = Program::new(name.as_bytes());
            return if wait { Ok(Target::Awaited(program)) } else { running(&program, name) };
        }
        if !self.attach.is_empty() {
            return Ok(Target::Processes(self.attach.clone()));
        }
        if command.is_empty() {
            bail!(
                "nothing to record: name a command, or processes (-p PID, --tree PID, --name PROGRAM, --cgroup PATH), or everything (-a)"
            );
        }
        launch(command).map(Target::Command)
    }
}

/// Processes that run a program now.
fn running(program: &Program, name: &OsStr) -> Result<Target> {
    let runs = |&pid: &u32| {
        let by_comm = plumb_process::comm(pid, pid).is_some_and(|comm| program.is_comm(&comm));
        by_comm || plumb_process::executable(pid).is_some_and(|path| program.is_executable(&path))
    };
    let own = std::process::id();
    let mut pids: Vec<u32> =
        plumb_process::pids().into_iter().filter(runs).filter(|&pid| pid != own).collect();
    if pids.is_empty() {
        bail!("no process runs {}; plumb record --wait waits for one", name.display());
    }
    pids.sort_unstable();
    Ok(Target::Processes(pids))
}

/// Builds the command from these words, which may begin with variables to set.
pub fn launch(words: &[OsString]) -> Result<Launch> {
    let variables = words.iter().map_while(|word| variable(word));
    let environment: Vec<(OsString, OsString)> = variables.collect();
    let mut words = words.iter().skip(environment.len()).cloned().peekable();
    if !environment.is_empty() {
        words.next_if(|word| word == "--");
    }
    let Some(program) = words.next() else { bail!("no command after the variables") };
    if program.as_bytes().starts_with(b"-") {
        bail!("{}: no such option; to see all: --help", program.display());
    }
    Ok(Launch { program, arguments: words.collect(), environment })
}

/// Splits a word like `VAR=x` into name and value.
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
    fn a_target_is_named_to_another_command_as_to_this_one() {
        let words = |target: TargetArgs| target.words().join(" ");
        assert_eq!(words(TargetArgs::default()), "");
        assert_eq!(words(TargetArgs { attach: vec![7, 8], ..TargetArgs::default() }), "-p 7,8");
        assert_eq!(words(TargetArgs { name: Some("api".into()), ..TargetArgs::default() }), "--name api");
    }

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
    fn a_mistyped_option_is_no_command() {
        let error =
            launch(&["A=1".into(), "--cal-graph".into()]).expect_err("no program is called so").to_string();
        assert_eq!(error, "--cal-graph: no such option; to see all: --help");
        assert!(launch(&["./-odd".into()]).is_ok());
    }

    #[test]
    fn who_runs_nothing_of_the_name_is_told_of_wait() {
        let name = OsStr::new("no-such-program-anywhere");
        let error = running(&Program::new(name.as_bytes()), name).expect_err("none runs").to_string();
        assert!(error.contains("--wait"), "{error}");
    }
}
