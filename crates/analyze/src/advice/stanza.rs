//! Rules of data: stanzas of `rules/*.toml`, for rules that need nothing but names, texts and numbers.
//!
//! A key that is not listed here is an error, as is a string with escapes (`'…'` and `'''…'''` have none). Tests read each file and try the
//! examples of each stanza.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Rule;
use super::calls::{CallRule, Often};
use super::code::{Activity, Code, CodeRule, GainModel, Language, Names};
use super::sentence::{grouped, part, text};

/// A rule. Texts without a comment are those of [`Rule`]. A rule on user code has `find`, a share and a gain; one on system calls has `watch`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stanza {
    pub name: &'static str,
    claim: &'static str,
    pattern: &'static str,
    /// The sentence of the threshold, with `{least}`, `{in_kernel}` and `{per_second}` for these numbers. The usual one is the default.
    #[serde(borrow)]
    threshold: Option<&'static str>,
    remedy: &'static str,
    /// Remedies in terms of a language.
    #[serde(borrow, default)]
    remedy_in: BTreeMap<Language, &'static str>,
    bound: &'static str,
    source: &'static str,
    /// Minimum share of CPU time, in percent.
    least_percent: Option<f64>,
    gain: Option<GainModel>,
    activity: Option<Activity>,
    find: Option<Find>,
    watch: Option<Counted>,
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests try examples"))]
    pub example: Option<Example>,
}

/// Functions whose calls count, with all that they call.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Find {
    /// Names as in [`Names`], and prefixes of names.
    #[serde(borrow)]
    functions: Vec<&'static str>,
    #[serde(borrow)]
    prefixes: Vec<&'static str>,
    /// Ends of the paths of scripts whose functions count.
    #[serde(borrow)]
    files: Vec<&'static str>,
    /// Calls below these functions that do not count, nor does the work of the kernel.
    without: Option<Without>,
    /// Minimum part of the cost that is the kernel's, 0 to 1.
    in_kernel: Option<f64>,
    /// Nothing counts if most of it is done for an interpreter's program, which cannot change it.
    not_for_scripts: bool,
    /// A rule whose functions only seem to call these.
    #[serde(borrow)]
    apart_from: Option<&'static str>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Without {
    #[serde(borrow)]
    functions: Vec<&'static str>,
    #[serde(borrow)]
    prefixes: Vec<&'static str>,
    /// The rule whose functions these are.
    #[serde(borrow)]
    rule: Option<&'static str>,
}

/// System calls whose rate alone is the pattern.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counted {
    #[serde(borrow)]
    calls: Vec<&'static str>,
    /// Minimum number of calls per second.
    per_second: f64,
}

/// Stacks, written as in `plumb_fixtures::Made`, of most of a program's time: one where the rule holds, and one that looks like it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests try examples"))]
pub(super) struct Example {
    pub seen: &'static str,
    pub unseen: &'static str,
}

/// Reads the stanzas of a file.
pub(super) fn read(file: &'static str) -> Result<Vec<Stanza>, String> {
    let mut file: BTreeMap<&str, Vec<Stanza>> = toml::from_str(file).map_err(|error| error.to_string())?;
    let rules = file.remove("rule").unwrap_or_default();
    if file.is_empty() { Ok(rules) } else { Err("only `[[rule]]` is known".into()) }
}

impl Stanza {
    /// Returns the rule, if it is one on user code. `all` are the stanzas that it may name.
    pub fn code_rule(&self, all: &[Stanza]) -> Result<Option<CodeRule>, String> {
        let Some(find) = &self.find else { return Ok(None) };
        let (Some(least_percent), Some(gain), None) = (self.least_percent, self.gain, &self.watch) else {
            return Err(format!("{}: `find` takes `least_percent` and `gain`, and no `watch`", self.name));
        };
        if find.without.is_some() && find.in_kernel.is_some()
            || !find.files.is_empty() && (find.without.is_some() || find.in_kernel.is_some())
        {
            return Err(format!("{}: one of `without`, `in_kernel` and `files`", self.name));
        }
        let rule = self.texts("at least {least}% of processor time");
        let functions = find.names();
        let (files, in_kernel, not_for_scripts) = (find.files.clone(), find.in_kernel, find.not_for_scripts);
        let without = find.without.as_ref().map(|without| without.names(all)).transpose()?;
        let find_all = move |code: &Code<'_, '_>| {
            let spent = match (&without, in_kernel) {
                (Some(without), _) => code.calls_without(&functions, without),
                (None, Some(least)) => code.calls_in_kernel(&functions, least),
                (None, None) => code.calls_and_scripts(&functions, &files),
            };
            if not_for_scripts && code.is_for_scripts(&spent) { Default::default() } else { spent }
        };
        let in_language = |(&of, &remedy): (&Language, &&'static str)| (of, Rule { remedy, ..rule });
        Ok(Some(CodeRule {
            in_language: self.remedy_in.iter().map(in_language).collect(),
            gain,
            activity: self.activity.clone(),
            apart_from: find.apart_from,
            named: find.in_words(),
            ..CodeRule::new(rule, least_percent, find_all)
        }))
    }

    /// Returns the rule, if it is one on single calls.
    pub fn call_rule(&self) -> Result<Option<CallRule>, String> {
        if self.find.is_some() {
            return Ok(None);
        }
        let of_code = (self.least_percent, self.gain, &self.activity, self.remedy_in.is_empty());
        let (Some(Counted { calls, per_second }), (None, None, None, true)) = (&self.watch, of_code) else {
            return Err(format!("{}: neither `find` nor only `watch`", self.name));
        };
        let (calls, per_second) = (&*calls.clone().leak(), *per_second);
        let rule = self.texts("{per_second} calls a second");
        Ok(Some(CallRule::new(rule, calls, move || Box::new(Often::new(calls, per_second)))))
    }

    /// Returns the texts, with numbers in place of their names.
    fn texts(&self, threshold: &'static str) -> Rule {
        let filled = |sentence: &'static str| {
            if !sentence.contains('{') {
                return sentence;
            }
            let least = self.least_percent.map(|least| least.to_string());
            let in_kernel = self.find.as_ref().and_then(|find| find.in_kernel);
            let per_second = self.watch.as_ref().map(|watch| watch.per_second);
            text(
                sentence
                    .replace("{least}", &least.unwrap_or_default())
                    .replace("{in_kernel}", &in_kernel.map(part).unwrap_or_default())
                    .replace("{per_second}", &per_second.map(grouped).unwrap_or_default()),
            )
        };
        let &Self { name, claim, pattern, remedy, bound, source, .. } = self;
        let threshold = filled(self.threshold.unwrap_or(threshold));
        Rule { name, claim, pattern, threshold, remedy, bound, source: filled(source) }
    }
}

impl Find {
    fn names(&self) -> Names {
        Names::kept(&self.functions, &self.prefixes)
    }

    fn in_words(&self) -> Vec<String> {
        let functions = self.functions.iter().chain(&self.prefixes).map(|name| format!("`{name}`"));
        functions.chain(self.files.iter().map(|file| format!("scripts in `{file}`"))).collect()
    }
}

impl Without {
    fn names(&self, all: &[Stanza]) -> Result<Names, String> {
        let Some(rule) = self.rule else {
            return Ok(Names::kept(&self.functions, &self.prefixes));
        };
        let of = all.iter().find(|one| one.name == rule).and_then(|one| one.find.as_ref());
        of.map(Find::names).ok_or_else(|| format!("{rule}: no rule on functions has this name"))
    }
}
