//! One option, one meaning: compares the options of all commands, as clap knows them.

use std::collections::BTreeMap;

use clap::{Arg, Command, CommandFactory};

/// Options that mean different things in different commands, with the reason.
const EXCEPTIONS: [(&str, &str); 13] = [
    ("alpha", "diff bounds the share of false rows, compare the chance of one false verdict"),
    ("attach", "stack looks at a process once, at this moment"),
    ("by", "the kind of rows or groups is each command's own"),
    ("cgroup", "trace follows the processes that are in it at the beginning"),
    (
        "event",
        "perf's name for both: record's chooses what is sampled, a reader's what is shown; no command has both",
    ),
    ("fail_on", "the example names what the command measures"),
    ("frequency", "the default of the agent is lower"),
    ("interval", "top refreshes its screen, the agent sends a request"),
    ("limit", "rows of a table, or instructions with their context"),
    ("min", "the unit to which the share belongs is the command's own"),
    ("output", "what is written, and where by default, is the command's own"),
    ("per", "calls by thread, or times by iteration"),
    ("stacks", "a switch of kernel's table, a number in procs"),
];

/// The user-visible parts of an option.
#[derive(PartialEq, Debug)]
struct Face {
    short: Option<char>,
    values: Vec<String>,
    help: String,
}

impl Face {
    fn of(arg: &Arg) -> Self {
        let values = arg.get_value_names().unwrap_or_default();
        Self {
            short: arg.get_short(),
            values: if arg.get_action().takes_values() {
                values.iter().map(|name| name.to_string()).collect()
            } else {
                Vec::new()
            },
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

/// The options of all commands by their long names.
fn options() -> BTreeMap<String, Vec<(String, Face)>> {
    fn collect(command: &Command, name: &str, all: &mut BTreeMap<String, Vec<(String, Face)>>) {
        for arg in command.get_arguments() {
            if let Some(long) = arg.get_long() {
                all.entry(long.to_owned()).or_default().push((name.to_owned(), Face::of(arg)));
            }
        }
        for inner in command.get_subcommands() {
            collect(inner, &format!("{name} {}", inner.get_name()), all);
        }
    }
    let mut all = BTreeMap::new();
    collect(&crate::Cli::command(), "plumb", &mut all);
    all
}

#[test]
fn an_option_of_one_name_is_one_option() {
    let mut different = Vec::new();
    let mut needed = Vec::new();
    for (long, faces) in options() {
        let (command, first) = &faces[0];
        for (other, face) in faces.iter().filter(|(_, face)| face != first) {
            match EXCEPTIONS.iter().find(|(name, _)| *name == long.replace('-', "_")) {
                // A different sentence or value may have its reason; a different letter never has.
                Some((name, _)) if face.short == first.short || *name == "event" => needed.push(*name),
                _ => different.push(format!("--{long}: {command} {first:?}, {other} {face:?}")),
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    let unneeded: Vec<_> = EXCEPTIONS.iter().filter(|(name, _)| !needed.contains(name)).collect();
    assert!(unneeded.is_empty(), "no exception any more: {unneeded:?}");
}

/// Letters that choose a target or a filter mean the same in every command.
#[test]
fn letters_of_targets_mean_nothing_else() {
    for (letter, name) in [('p', "attach"), ('G', "cgroup"), ('a', "all"), ('o', "output")] {
        for (long, faces) in options() {
            for (command, _) in faces.iter().filter(|(_, face)| face.short == Some(letter)) {
                assert!(long == name, "{command}: -{letter} is --{long}");
            }
        }
    }
}

#[test]
fn earlier_names_of_options_are_taken() {
    for line in [
        "record --pid 1,2",
        "top --pid 1",
        "trace --pid 1 --calls read",
        "stack --pid 1",
        "kernel --record-pid 1",
        "procs --record-pid 1",
        "procs -P 1",
        "report --thread worker --tree",
        "bench fork --runs 3",
    ] {
        let words = format!("plumb {line}");
        let taken = crate::Cli::command().try_get_matches_from(words.split(' '));
        assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
        let help = crate::Cli::command().render_long_help().to_string();
        assert!(!help.contains("record-pid"));
    }
}

#[test]
fn targets_exclude_each_other_a_command_and_a_file() {
    for line in [
        "record -a -p 1",
        "record -a -- true",
        "record -p 1 --tree 2",
        "kernel -p 1 -- true",
        "kernel file.plumb -a",
        "procs file.plumb -p 1",
        "explain file.plumb --cgroup /",
        "explain file.plumb -- true",
        "trace --name sh -- true",
    ] {
        let words = format!("plumb {line}");
        assert!(crate::Cli::command().try_get_matches_from(words.split(' ')).is_err(), "{line}");
    }
    for line in [
        "kernel --duration 1 -- true",
        "procs --pid 1 file.plumb",
        "explain -a --duration 1",
        "kernel file.plumb --tid 3",
    ] {
        let words = format!("plumb {line}");
        let taken = crate::Cli::command().try_get_matches_from(words.split(' '));
        assert!(taken.is_ok(), "{line}: {}", taken.unwrap_err());
    }
}
