//! The options that each kind of answer takes. Any other option is an error: it would silently change nothing.

use anyhow::Result;
use clap::ValueEnum;

use super::{Args, What};
use crate::exit::wrong_usage;

/// An option that only some answers take.
struct Partial {
    /// The option as typed.
    name: &'static str,
    is_given: bool,
    takes: &'static [What],
}

/// Answers that are printed as a table but have all rows in JSON.
const WHOLE_IN_JSON: [What; 3] = [What::Callers, What::Verdict, What::Findings];

/// Answers about samples of one type.
const OF_A_TYPE: [What; 9] = [
    What::Functions,
    What::Callers,
    What::Tree,
    What::Flame,
    What::Diff,
    What::Series,
    What::Verdict,
    What::Findings,
    What::Export,
];

fn partial(args: &Args) -> [Partial; 10] {
    let of = |name, is_given, takes| Partial { name, is_given, takes };
    let base = &args.base;
    [
        of("NAME", args.name.is_some(), &[What::Callers, What::Labels]),
        of("--type", args.kind.is_some(), &OF_A_TYPE),
        of(
            "--limit",
            args.limit.is_some(),
            &[What::Functions, What::Callers, What::Series, What::Verdict, What::Findings, What::Report],
        ),
        of("--by", !args.by.is_empty(), &[What::Series]),
        of("--format", args.format.is_some(), &[What::Export]),
        of("--output", args.output.is_some(), &[What::Flame, What::Diff, What::Export, What::Report]),
        of("--md", args.md, &[What::Report]),
        // `--base-until` requires this one.
        of("--base-from", base.base_from.is_some(), &[What::Diff]),
        of("--base-query", base.base_query.is_some(), &[What::Diff]),
        of(
            "--json",
            args.json,
            &[
                What::Services,
                What::Labels,
                What::Types,
                What::Functions,
                What::Callers,
                What::Tree,
                What::Diff,
                What::Series,
                What::Verdict,
                What::Findings,
            ],
        ),
    ]
}

/// Checks that the answer takes all given options.
///
/// # Errors
/// An option does not apply to the answer. The message lists the answers that take it.
pub(super) fn check(args: &Args) -> Result<()> {
    let what = word(args.what);
    let is_refused = |one: &Partial| one.is_given && !one.takes.contains(&args.what);
    if let Some(one) = partial(args).into_iter().find(is_refused) {
        let takers: Vec<String> = one.takes.iter().map(|&taker| word(taker)).collect();
        let takers = takers.join(", ");
        return Err(wrong_usage(match (one.name, &args.name) {
            ("NAME", Some(name)) => {
                let hint = "to filter, type --query '{service_name=\"NAME\"}'";
                format!("plumb query {what} takes no NAME, but got '{name}': {takers} do; {hint}")
            }
            (option, _) => format!("plumb query {what} takes no {option}; these do: {takers}"),
        }));
    }
    if args.what == What::Callers && args.name.is_none() {
        return Err(wrong_usage("callers of which function? plumb query callers FUNCTION"));
    }
    if args.json && args.limit.is_some() && WHOLE_IN_JSON.contains(&args.what) {
        return Err(wrong_usage(format!("plumb query {what} --json prints all rows: leave out --limit")));
    }
    Ok(())
}

/// The name of an answer on the command line.
fn word(what: What) -> String {
    what.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn checked(line: &str) -> Result<(), String> {
        let words = ["query"].into_iter().chain(line.split(' '));
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        check(&line.args).map_err(|error| error.to_string())
    }

    /// Tries each option with each answer.
    #[test]
    fn an_answer_takes_an_option_or_refuses_it() {
        let options = [
            ("NAME", "callers labels"),
            ("--type a:b:c:d:e", "functions callers tree flame diff series verdict findings export"),
            ("--limit 3", "functions callers series verdict findings report"),
            ("--by pod", "series"),
            ("--format folded", "export"),
            ("-o x.html", "flame diff export report"),
            ("--md", "report"),
            ("--base-from 1 --base-until 2", "diff"),
            ("--base-query {}", "diff"),
            ("--json", "services labels types functions callers tree diff series verdict findings"),
        ];
        for what in What::value_variants().iter().map(|&what| word(what)) {
            let name = if what == "callers" { " f" } else { "" };
            assert_eq!(checked(&format!("{what}{name}")), Ok(()));
            for (option, takers) in options {
                let line = match option {
                    "NAME" => format!("{what} f"),
                    option => format!("{what}{name} {option}"),
                };
                let said = checked(&line);
                assert_eq!(said.is_ok(), takers.split(' ').any(|taker| taker == what), "{line}: {said:?}");
                if let Err(said) = said {
                    assert!(
                        said.contains(&format!("plumb query {what} takes no --")) || option == "NAME",
                        "{said}"
                    );
                    assert!(takers.split(' ').all(|taker| said.contains(taker)), "{line}: {said}");
                }
            }
        }
    }

    #[test]
    fn a_json_document_has_all_rows() {
        assert!(checked("verdict --json --limit 3").is_err_and(|said| said.contains("leave out --limit")));
        assert_eq!(checked("functions --json --limit 3"), Ok(()));
        assert!(checked("callers").is_err_and(|said| said.contains("plumb query callers FUNCTION")));
    }
}
