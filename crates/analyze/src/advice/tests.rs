//! Tests of all rules: their texts, and the examples of those that are data.

use plumb_fixtures::Made;

use super::code::Language;
use super::registry::{SUBJECTS, all, call_rules, code_rules, program_rules};
use super::{Rule, ScriptSources, stanza};
use crate::{CacheSizes, ExplainOptions, Explanation, Filter};

#[test]
fn each_rule_says_all_that_it_has_to() {
    all().expect("files that can be read");
    let (code, calls) = (code_rules().map(|rule| &rule.rule), call_rules().map(|rule| &rule.rule));
    let rules: Vec<&Rule> = code.chain(calls).chain(program_rules().map(|rule| &rule.rule)).collect();
    for (at, rule) in rules.iter().enumerate() {
        // Languages have rules of one name.
        let is_same = |other: &&Rule| (other.name, other.pattern) == (rule.name, rule.pattern);
        assert!(!rules[..at].iter().any(is_same), "{} twice", rule.name);
        let Rule { claim, pattern, threshold, remedy, bound, source, .. } = rule;
        for text in [claim, pattern, threshold, remedy, bound, source] {
            assert!(!text.is_empty() && text.trim() == *text, "{}: {text:?}", rule.name);
            assert!(!text.contains("  ") && !text.ends_with('.'), "{}: {text}", rule.name);
            assert!(!text.contains(['{', '}']) && !text.contains("infinite"), "{}: {text}", rule.name);
        }
        assert!(rule.name.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase()), "{}", rule.name);
    }
    assert!(call_rules().all(|rule| rule.faults || !rule.calls.is_empty()));
}

/// Returns the names of the rules that hold for a program with nine tenths of its time in a stack.
fn found(stack: &str) -> Vec<&'static str> {
    let mut made = Made::new();
    for at in 0..200 {
        made.sample("app/1", if at % 10 == 0 { "main:3@app" } else { stack }, 1_000_000);
    }
    let mut profile = made.profile;
    profile.meta.duration_ns = 200_000_000;
    profile.meta.target_cpu_ns = Some(200_000_000);
    let options = ExplainOptions {
        threshold: 10.0,
        call_name: &|_| None,
        calls: Vec::new(),
        sources: &ScriptSources::default(),
        caches: CacheSizes::default(),
        waits: None,
    };
    let filter = Filter::default();
    let report = Explanation::new(Explanation::view(&profile, &filter), &filter, &[], &options);
    report.causes.iter().map(|cause| cause.rule.name).collect()
}

#[test]
fn rules_of_data_hold_for_their_examples_only() {
    let files = SUBJECTS.iter().map(|subject| stanza::read(subject.data).expect(subject.title));
    for stanza in files.flatten() {
        let Some(stanza::Example { seen, unseen }) = stanza.example else {
            assert!(matches!(stanza.call_rule(), Ok(Some(_))), "{} has no example", stanza.name);
            continue;
        };
        assert!(found(seen).contains(&stanza.name), "{} not in {seen}: {:?}", stanza.name, found(seen));
        assert!(!found(unseen).contains(&stanza.name), "{} in {unseen}", stanza.name);
    }
}

#[test]
fn a_key_that_nobody_knows_is_refused() {
    let refused = |text: &'static str| stanza::read(text).err().unwrap_or_default();
    assert!(refused("[[rules]]\n").contains("rule"));
    let stanza =
        "[[rule]]\nname = 'a'\nclaim = 'b'\npattern = 'c'\nremedy = 'd'\nbound = 'e'\nsource = 'f'\n";
    assert_eq!(refused(stanza), "");
    assert!(refused(format!("{stanza}find.function = ['g']").leak()).contains("unknown field `function`"));
    let of = |keys: &str| {
        let stanzas = stanza::read(format!("{stanza}{keys}").leak()).expect("keys that are known");
        let error = stanzas[0].code_rule(&stanzas).err();
        error.or(stanzas[0].call_rule().err()).unwrap_or_default()
    };
    let code = "least_percent = 2\ngain = 'unknown'\nfind.functions = ['g']\n";
    assert_eq!([of(code), of("watch = { calls = ['g'], per_second = 2 }")], [""; 2]);
    assert!(of("").contains("neither `find` nor only `watch`"));
    assert!(of("find.functions = ['g']").contains("`find` takes `least_percent`"));
    assert!(of(&format!("{code}find.without.rule = 'z'")).contains("z: no rule"));
    assert!(of(&format!("{code}find.without = {{}}\nfind.files = ['z']")).contains("one of"));
}

#[test]
fn a_rule_speaks_the_language_of_the_code() {
    let rule = code_rules().find(|rule| rule.rule.name == "append-by-copy").expect("a rule with languages");
    let remedy = |language| rule.in_words_of(language).remedy;
    assert!(remedy(Some(Language::Go)).contains("strings.Builder"));
    assert!(remedy(Some(Language::JavaScript)).contains("push"));
    assert_eq!([None, Some(Language::Java)].map(remedy), [rule.rule.remedy; 2], "nothing of its own");
    assert_eq!(code_rules().map(|rule| rule.in_language.len()).sum::<usize>(), 12);
}
