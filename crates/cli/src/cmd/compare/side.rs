//! The compared sides A and B: command and environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use anyhow::{Result, bail};
use plumb_target::Launch;

/// Characters with a meaning to a shell beyond words and quotes.
const SHELL: &str = "|&;<>()$`*?[]#~{}!\n";

/// One of the two commands.
#[derive(Debug)]
pub(super) struct Side {
    pub name: &'static str,
    /// The command as given.
    pub text: String,
    /// Variables set for it.
    pub variables: Vec<String>,
    pub launch: Launch,
}

/// A variable for A (0) or B (1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    side: usize,
    name: String,
    value: String,
}

/// Reads `A:NAME=VALUE`.
pub(super) fn variable(text: &str) -> Result<Variable, String> {
    let wrong = || "expected A:NAME=VALUE or B:NAME=VALUE".to_owned();
    let (side, setting) = text.split_once(':').ok_or_else(wrong)?;
    let (name, value) = setting.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let side = match side {
        "A" | "a" => 0,
        "B" | "b" => 1,
        _ => return Err(wrong()),
    };
    Ok(Variable { side, name: name.into(), value: value.into() })
}

impl Side {
    /// A and B.
    pub fn both(commands: &[OsString], variables: &[Variable]) -> Result<[Side; 2]> {
        let [a, b] = commands else {
            bail!("two commands are compared: quote each, 'COMMAND A' 'COMMAND B'")
        };
        Ok([Side::new("A", a, variables, 0)?, Side::new("B", b, variables, 1)?])
    }

    fn new(name: &'static str, command: &OsStr, variables: &[Variable], side: usize) -> Result<Side> {
        let text = command.to_string_lossy().into_owned();
        let own: Vec<&Variable> = variables.iter().filter(|variable| variable.side == side).collect();
        let mut launch = launch(command)?;
        launch
            .environment
            .extend(own.iter().map(|variable| (variable.name.clone().into(), variable.value.clone().into())));
        let variables = own.iter().map(|variable| format!("{}={}", variable.name, variable.value)).collect();
        Ok(Side { name, text, variables, launch })
    }
}

/// Splits a command into words, or runs it in a shell if it needs one.
fn launch(command: &OsStr) -> Result<Launch> {
    let plain = command.to_str().filter(|text| !text.contains(|c| SHELL.contains(c)));
    let words = plain.and_then(|text| shell_words::split(text).ok());
    match words {
        Some(words) if words.is_empty() => bail!("a command is empty"),
        // The words before the program may set variables.
        Some(words) => crate::args::launch(&words.into_iter().map(OsString::from).collect::<Vec<_>>()),
        None => Ok(Launch {
            program: "sh".into(),
            arguments: vec!["-c".into(), exec(command)],
            environment: Vec::new(),
        }),
    }
}

/// The command unchanged: a shell replaces itself by the last command on its own where it can.
fn exec(command: &OsStr) -> OsString {
    OsStr::from_bytes(command.as_bytes()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_commands_are_run_and_others_are_left_to_a_shell() {
        let words = |text: &str| {
            let launch = launch(OsStr::new(text)).expect("it is a command");
            [vec![launch.program], launch.arguments].concat()
        };
        assert_eq!(words("ls -l 'a b'"), ["ls", "-l", "a b"]);
        assert_eq!(words("ls | wc"), ["sh", "-c", "ls | wc"]);
        assert_eq!(words("echo $HOME"), ["sh", "-c", "echo $HOME"]);
        let set = launch(OsStr::new("X=1 ./prog y")).expect("it is a command");
        assert_eq!((set.program, set.environment), ("./prog".into(), vec![("X".into(), "1".into())]));
        assert!(launch(OsStr::new(" ")).is_err());
    }

    #[test]
    fn variables_are_of_one_side() {
        let found = variable("B:LD_PRELOAD=/x:y=z").expect("it is one");
        assert_eq!((found.side, &found.name[..], &found.value[..]), (1, "LD_PRELOAD", "/x:y=z"));
        assert!(variable("C:X=1").is_err() && variable("X=1").is_err() && variable("A:=1").is_err());
        let both = Side::both(&["true".into(), "true".into()], &[found]).expect("they are commands");
        assert!(both[0].variables.is_empty() && both[1].variables == ["LD_PRELOAD=/x:y=z"]);
    }
}
