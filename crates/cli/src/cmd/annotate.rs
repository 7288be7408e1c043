//! `plumb annotate`: one function, instruction by instruction and line by line.

mod machine;
mod shown;
mod text;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use plumb_analyze::{Filter, View};
use plumb_profile::Profile;
use plumb_symbolize::{NoCode, Options};

use crate::args::FilterArgs;
use crate::exit::Exit;
use crate::terminal::{Output, finish, say};
use plumb_documents::code::{Annotated, annotate};
use plumb_documents::listing::{FunctionListing, choice, page};
use plumb_documents::source::Sources;

pub use shown::Args;

/// Runs `plumb annotate`.
pub fn run(args: Args) -> Result<Exit> {
    let args = args.in_order();
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from("profile.plumb"));
    let profile = crate::load::load(&file, &args.filters.symfs)?;
    let mut out = Output::stdout();
    finish(write(&profile, &args, &mut out))
}

/// Writes the listing of a function, of the samples of one event.
pub fn listing(profile: &Profile, filter: &Filter, function: &str, out: &mut Output<'_>) -> Result<()> {
    let args = Args { function: function.into(), ..Args::default() };
    write_filtered(profile, filter, &args, out)
}

fn write(profile: &Profile, args: &Args, out: &mut Output<'_>) -> Result<()> {
    write_filtered(profile, &one_event(profile, &args.filters)?, args, out)
}

fn write_filtered(profile: &Profile, filter: &Filter, args: &Args, out: &mut Output<'_>) -> Result<()> {
    let view = View::new(profile, filter);
    let function = choice::function(&view, &args.function)?;
    let options = Options::default();
    let annotated = annotate(&view, &function, &options)
        .with_context(|| format!("{} in {}", function.name, function.path))?;
    let mut sources = Sources::new(args.source_map.clone());
    if function.is_script(&view) {
        script_has_source(&annotated, &mut sources, args)
            .with_context(|| format!("{} in {}", function.name, function.path))?;
    }
    let mut shown =
        FunctionListing { view: &view, filter, function: &function, annotated: &annotated, sources };
    if args.html {
        let page = page::page(&mut shown, args.context(), args.style(&annotated));
        crate::render::page::deliver(page.as_bytes(), args.output.as_deref(), "annotate", out)?;
    } else if args.json {
        machine::json(&mut shown, out)?;
    } else {
        text::write(&mut shown, args, out)?;
    }
    out.flush()?;
    Ok(())
}

/// Fails unless the source of a function of an interpreted program is there: it is all that there is to show.
fn script_has_source(annotated: &Annotated, sources: &mut Sources, args: &Args) -> Result<()> {
    if args.asm {
        bail!("{}", NoCode::Interpreted);
    }
    let places = annotated.annotation.rows.iter().flat_map(|row| &row.places);
    if places.clone().all(|place| sources.line(&place.file, place.line).is_none()) {
        let (file, why) = sources.missing().next().unwrap_or(("its source", "it has no such line"));
        bail!("cannot read {file}: {why}; if it is elsewhere: --source-map FROM=TO");
    }
    Ok(())
}

/// The filter for one event: nanoseconds can't be added to page faults.
fn one_event(profile: &Profile, filters: &FilterArgs) -> Result<Filter> {
    let mut per_event = filters.filter_per_event(profile)?;
    if per_event.len() > 1 {
        let names: Vec<&str> = per_event
            .iter()
            .filter_map(|filter| filter.event)
            .map(|event| profile.strings.get(profile.events[event].name))
            .collect();
        say!("showing {}; --event chooses among {}", names[0], names.join(", "));
    }
    if profile.samples.is_empty() {
        bail!("the recording has no samples");
    }
    Ok(per_event.swap_remove(0))
}

#[cfg(test)]
mod tests {
    use plumb_fixtures::Made;

    use super::*;

    /// A recording of a script in this file: a loop that calls.
    fn made(file: &str) -> Made {
        let mut made = Made::new();
        for (stack, weight) in
            [("g:2@py", 30), ("g:3@py", 10), ("g:3@py;h:7@py", 40), ("g:3@py;g:3@py;g:2@py", 20)]
        {
            let stack = stack.replace("@py", &format!("@py:{file}"));
            made.sample("python3/1", &format!("main@python3;{stack}"), weight);
        }
        made
    }

    fn annotated(made: &Made, args: &Args) -> Result<String> {
        let mut bytes = Vec::new();
        write_filtered(&made.profile, &Filter::default(), args, &mut Output::plain(&mut bytes))?;
        Ok(String::from_utf8(bytes)?)
    }

    #[test]
    fn lines_of_a_script_have_their_shares() {
        let path = std::env::temp_dir().join(format!("plumb-annotate-{}.py", std::process::id()));
        std::fs::write(&path, "def g():\n    work()\n    h()\n\n").expect("it can be written");
        let made = made(&path.display().to_string());
        let text = annotated(&made, &Args { function: "g".into(), ..Args::default() }).expect("it has lines");
        let line = |number: &str| {
            let row = text.lines().find(|row| row.contains(number)).unwrap_or_else(|| panic!("{text}"));
            row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        // Of its own 60; of all 100; in what was called from there.
        assert_eq!(line("work()"), ["83%", "50%", "2", "work()"]);
        assert_eq!(line(" h()"), ["17%", "10%", "60%", "3", "h()"]);
        assert!(text.contains("Itself:   60") && !text.contains("instruction"), "{text}");
        let json = annotated(&made, &Args { function: "g".into(), json: true, ..Args::default() })
            .expect("the same");
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(
            (&json["samples"], &json["lines"][0]["text"]),
            (&3.into(), &"    work()".into()),
            "{json}"
        );
        let page = annotated(&made, &Args { function: "g".into(), html: true, ..Args::default() });
        let page = page.expect("it has lines");
        assert!(page.contains("work()") && !page.contains("Hottest instructions"), "{page}");
        std::fs::remove_file(path).expect("it was written");
    }

    #[test]
    fn a_script_whose_source_is_not_there_is_refused_with_the_reason() {
        let made = made("/nowhere/app.py");
        let why = annotated(&made, &Args { function: "g".into(), ..Args::default() });
        let why = format!("{:#}", why.expect_err("there is nothing to show"));
        assert!(why.contains("/nowhere/app.py") && why.contains("--source-map"), "{why}");
        let why = annotated(&made, &Args { function: "g".into(), asm: true, ..Args::default() });
        assert!(format!("{:#}", why.expect_err("it has none")).contains("no machine code"));
    }
}
