//! The examples at the end of each `--help`.
//!
//! A command with an operand of each kind has an example of each; the test parses all of them.

/// A note, and examples below it. Lines of the note that are not indented are joined: clap wraps them to the terminal's width.
pub fn below(note: &str, examples: &str) -> String {
    let mut text = String::new();
    let mut is_prose = false;
    for line in note.lines() {
        let was_prose = std::mem::replace(&mut is_prose, !line.is_empty() && !line.starts_with(' '));
        match is_prose && was_prose {
            true => text.push(' '),
            false if text.is_empty() => {}
            false => text.push('\n'),
        }
        text.push_str(line);
    }
    format!("{text}\n\n{examples}")
}

pub const PLUMB: &str = "\
Examples:
  plumb record -- make -j8           # record a command to profile.plumb
  plumb report                       # show its hottest functions
  sudo plumb top                     # watch the whole machine live";

pub const RECORD: &str = "\
Examples:
  plumb record --open -- make -j8             # a command and its children, then the browser
  plumb record -p 1234 --duration 30          # a running process, for 30 s
  sudo plumb record --off-cpu -- ./server     # what its threads wait for";

pub const TOP: &str = "\
Examples:
  sudo plumb top                              # the whole machine
  plumb top -p 1234 --view callers            # one process, bottom-up
  plumb top --batch -n 5 -- make              # five plain-text tables";

pub const REPORT: &str = "\
Examples:
  plumb report --sort dso                     # time by executable and library
  plumb report --bottom-up --limit 20         # call tree of the hottest functions
  plumb report --callers malloc --comm worker # who calls malloc in one thread";

pub const ANNOTATE: &str = "\
Examples:
  plumb annotate parse_line                   # a function of profile.plumb
  plumb annotate before.plumb /^hash/ --asm   # of another recording
  plumb annotate parse_line --html -o page.html";

pub const PROCS: &str = "\
Examples:
  plumb procs                                 # the processes in profile.plumb
  plumb procs -- make -j8                     # record a build and show its processes
  sudo plumb procs -a --duration 10           # the whole machine, for 10 s";

pub const STAT: &str = "\
Examples:
  plumb stat -- sort big.txt                  # one run
  plumb stat -n 20 --warmup 2 -- ./bench      # medians of 20 runs
  plumb stat --json -o stat.json -- ./bench";

pub const KERNEL: &str = "\
Examples:
  plumb kernel                                # kernel time in profile.plumb
  sudo plumb kernel --latency -- tar xf big.tar  # duration of every system call
  sudo plumb kernel --advice -p 1234 --duration 10";

pub const COMPARE: &str = "\
Examples:
  plumb compare 'sort a.txt' 'sort --parallel=8 a.txt'
  plumb compare -n 30 --fail-on 'wall>3%' ./old ./new
  plumb compare --env A:LANG=C --env B:LANG=C.UTF-8 'sort a.txt' 'sort a.txt'";

pub const EXPLAIN: &str = "\
Examples:
  plumb explain                               # the hotspots in profile.plumb
  plumb explain -- ./bench                    # record a command and explain it
  plumb explain --html > hotspots.html";

pub const DIFF: &str = "\
Examples:
  plumb diff                                  # profile.plumb.old and profile.plumb
  plumb diff before.plumb after.plumb --by line
  plumb diff --fail-on 'total>3%' base1.plumb base2.plumb -- new1.plumb new2.plumb";

pub const SCRIPT: &str = "\
Examples:
  plumb script --time 1.5-2                   # samples of half a second
  plumb script -F +srcline,-symoff            # with source lines
  plumb script --comm worker perf.data        # of a recording of perf";

pub const FOLD: &str = "\
Examples:
  plumb fold | flamegraph.pl > flame.svg
  plumb fold --annotate --no-idle perf.data | inferno-flamegraph > flame.svg";

pub const EXPORT: &str = "\
Examples:
  plumb export -o cpu.pb.gz                   # for go tool pprof
  plumb export -o cpu.firefox.json.gz         # for profiler.firefox.com
  plumb export --format folded -o - perf.data # folded stacks of a recording of perf";

pub const VIEW: &str = "\
Examples:
  plumb view                                  # profile.plumb
  plumb view --view flame --pid 1234          # the flame graph of one process
  plumb view after.plumb --base before.plumb  # the key d shows the difference";

pub const FLAME: &str = "\
Examples:
  plumb flame --open                          # flame.html of profile.plumb
  plumb flame -o flame.svg --by thread perf.data
  plumb flame --focus ^parse --no-idle        # only stacks with these functions";

pub const STACK: &str = "\
Examples:
  plumb stack 1234
  plumb stack -p 1234,1240 --json";

pub const TRACE: &str = "\
Examples:
  sudo plumb trace -- ls                      # every system call of a command
  sudo plumb trace -e %file --failed -p 1234  # failed calls that take a path
  sudo plumb trace --summary -a --duration 10 # a table for the whole machine";

pub const BENCH: &str = "\
Examples:
  plumb bench fork
  plumb bench fork --sizes 0,100,1000 --starts 100";

pub const BENCH_FORK: &str = "\
Examples:
  plumb bench fork --sizes 0,100,1000 --starts 100
  plumb bench fork --program /usr/bin/env --json";

pub const DOCTOR: &str = "\
Examples:
  plumb doctor                                # this machine and user
  plumb doctor profile.plumb                  # what a recording lacks
  plumb doctor --json > doctor.json           # for a bug report";

#[cfg(feature = "agent")]
pub const AGENT: &str = "\
Examples:
  sudo plumb agent                            # to a server on this machine
  sudo plumb agent --to https://profiles.example:4041 --token token
  sudo plumb agent --label region=eu --relabel 'drop:service.name=ssh.*'";

#[cfg(feature = "server")]
pub const OPEN: &str = "\
Examples:
  plumb open                                  # profile.plumb
  plumb open old.plumb new.plumb              # two recordings, to switch between
  plumb open cpu.pb.gz                        # a profile of another tool";

#[cfg(feature = "server")]
pub const SERVE: &str = "\
Examples:
  plumb serve profile.plumb                   # a recording, for the browser
  plumb serve --store /var/lib/plumb --retention 90d --max-size 100G
  plumb serve --listen 0.0.0.0:4041 --tls-cert cert.pem --tls-key key.pem --tokens tokens";

#[cfg(feature = "server")]
pub const PUSH: &str = "\
Examples:
  plumb push                                  # profile.plumb to 127.0.0.1:4041
  plumb push cpu.pb.gz --service checkout --to https://profiles.example:4041 --token token
  plumb push /usr/lib/debug/app.debug         # names for frames that came without";

#[cfg(feature = "server")]
pub const QUERY: &str = "\
Other commands read profiles from a server by URL: plumb report 'http://127.0.0.1:4041/?from=now-1h'

Examples:
  plumb query findings                        # what stands out in all services
  plumb query functions --query '{service_name=\"api\"}' --from now-6h
  plumb query report --md -o week.md          # a week against the week before";

pub const GENERATE: &str = "\
Examples:
  plumb generate man /usr/local/share/man/man1
  plumb generate completions bash > plumb.bash";

pub const MAN: &str = "\
Examples:
  plumb generate man man1
  plumb generate man /usr/local/share/man/man1";

pub const COMPLETIONS: &str = "\
Examples:
  plumb generate completions bash > ~/.local/share/bash-completion/completions/plumb
  plumb generate completions fish > ~/.config/fish/completions/plumb.fish";

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    /// The words of a line, up to what a shell takes for itself; quotes are removed.
    fn words(line: &str) -> Vec<String> {
        let line =
            [" # ", " | ", " > "].iter().fold(line, |line, end| line.split(end).next().unwrap_or(line));
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            if index % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    fn check(command: &Command, name: &str) {
        let help = command.clone().render_long_help().to_string();
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{name}: no examples"));
        let lines: Vec<&str> = examples.lines().filter(|line| !line.trim().is_empty()).collect();
        assert!((2..=3).contains(&lines.len()), "{name}: {lines:?}");
        for line in lines {
            let words = words(line.trim().trim_start_matches("sudo "));
            assert!(words.join(" ").starts_with(name), "{name}: {line}");
            let parsed = crate::Cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn paragraphs_are_joined_and_tables_are_not() {
        let note = "One\nsentence.\n\nAnother\none:\n  a  1\n  b  2\nEnd.";
        assert_eq!(
            super::below(note, "Examples:"),
            "One sentence.\n\nAnother one:\n  a  1\n  b  2\nEnd.\n\nExamples:"
        );
    }

    #[test]
    fn every_help_ends_with_examples_that_parse() {
        let plumb = crate::Cli::command().term_width(120);
        check(&plumb, "plumb");
        for command in plumb.get_subcommands() {
            let name = format!("plumb {}", command.get_name());
            check(command, &name);
            for inner in command.get_subcommands() {
                check(inner, &format!("{name} {}", inner.get_name()));
            }
        }
    }
}
