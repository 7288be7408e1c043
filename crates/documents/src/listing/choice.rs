//! The function that a user names: by its name, a part of it as lists shorten it, or an address.

use std::fmt;

use plumb_analyze::{
    BadPattern, Pattern, Precision, SampledFunction, View, collapse_templates, sampled, sampled_files,
    sampled_scripts, sampled_within,
};
use plumb_profile::{Address, parse_unnamed_function};
use plumb_symbolize::{Binary, Options};

/// Marks the omitted part of a shortened name.
const LEFT_OUT: char = '…';
/// Most functions in the list of candidates.
const OFFERED: usize = 20;
/// Longer names, in characters, are shown without their template arguments.
const LONG: usize = 100;

/// The reason why a text names no function, or more than one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "`text` is what was asked for; `list` has candidates, one per line, as `function` accepts them"
)]
pub enum FunctionChoiceError {
    /// A pattern can't be compiled.
    BadPattern(BadPattern),
    /// Several functions have the name.
    Several { text: String, count: usize, list: String },
    /// The function was only inlined.
    OnlyInlined { text: String, list: String },
    /// No function has the name, but some have a part of it.
    Similar { text: String, list: String },
    /// No function has the name; the candidates are the hottest.
    Unknown { text: String, list: String },
    /// No function has a symbol.
    Nameless,
    /// No sampled file has the name.
    NoFile,
    /// The code at an address can't be read.
    NoCode(Address, String),
    /// No sample is in a function at an address.
    NotSampled(Address),
    /// Several files have the address.
    SeveralFiles { count: usize, list: String },
}

impl fmt::Display for FunctionChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadPattern(bad) => bad.fmt(f),
            Self::Several { text, count, list } => write!(
                f,
                "{count} functions are called `{text}`; name one, with its file behind an @ if need be:\n{list}"
            ),
            Self::OnlyInlined { text, list } => {
                write!(f, "`{text}` was only inlined, into functions that can be annotated:\n{list}")
            }
            Self::Similar { text, list } => {
                write!(f, "no function with samples is called `{text}`; similar names:\n{list}")
            }
            Self::Unknown { text, list } => {
                write!(f, "no function with samples is called `{text}`; the hottest are:\n{list}")
            }
            Self::Nameless => f.write_str(
                "no sample is in a function with a symbol; one without is named by its file and an address in it, as plumb report \
                 shows it: FILE+0x1234",
            ),
            Self::NoFile => f.write_str("no sample is in a file of that name"),
            Self::NoCode(address, why) => write!(f, "{:#x}: {why}", address.0),
            Self::NotSampled(address) => write!(f, "no sample is in a function at {:#x}", address.0),
            Self::SeveralFiles { count, list } => {
                write!(f, "{count} files have such an address; name one behind an @:\n{list}")
            }
        }
    }
}

impl std::error::Error for FunctionChoiceError {}

impl From<BadPattern> for FunctionChoiceError {
    fn from(bad: BadPattern) -> Self {
        Self::BadPattern(bad)
    }
}

/// The only sampled function that matches `text`: a function, or FUNCTION@FILE.
///
/// # Errors
/// Several match, or none.
pub fn function(view: &View<'_>, text: &str) -> Result<SampledFunction, FunctionChoiceError> {
    if let Some((address, module)) = by_address(text)? {
        return at(view, address, module.as_ref());
    }
    let mut found = all_sampled(view, Some(&Pattern::parse(text)?), None);
    // An `@` may be part of the name, as in memcpy@plt.
    if found.is_empty()
        && let Some((function, module)) = text.rsplit_once('@')
    {
        found = all_sampled(view, Some(&Pattern::parse(function)?), Some(&Pattern::parse(module)?));
    }
    if found.is_empty() {
        // Try names as shortened in the list below.
        let whole = all_sampled(view, Some(&Pattern::regex("")?), None);
        found = whole.into_iter().filter(|function| shown_name(function) == text).collect();
    }
    if found.is_empty() && text.contains(LEFT_OUT) {
        found = all_sampled(view, Some(&shortened(text)?), None);
    }
    let named = found.iter().filter(|function| function.inlined.is_empty()).count();
    if named == 1 {
        return Ok(found.swap_remove(0));
    }
    let text_of = || text.to_owned();
    if named > 1 {
        let list = list(view, &found[..named]);
        return Err(FunctionChoiceError::Several { text: text_of(), count: named, list });
    }
    if !found.is_empty() {
        return Err(FunctionChoiceError::OnlyInlined { text: text_of(), list: list(view, &found) });
    }
    let all = all_sampled(view, None, None);
    let part = text.trim_matches('/').to_lowercase();
    let similar: Vec<SampledFunction> =
        all.iter().filter(|function| function.name.to_lowercase().contains(&part)).cloned().collect();
    Err(match (similar.is_empty(), all.is_empty()) {
        (_, true) => FunctionChoiceError::Nameless,
        (true, _) => FunctionChoiceError::Unknown { text: text_of(), list: list(view, &all) },
        _ => FunctionChoiceError::Similar { text: text_of(), list: list(view, &similar) },
    })
}

/// Native and interpreted functions, as [`sampled`] finds them.
fn all_sampled(
    view: &View<'_>,
    function: Option<&Pattern>,
    module: Option<&Pattern>,
) -> Vec<SampledFunction> {
    let mut found = sampled(view, function, module);
    found.splice(0..0, sampled_scripts(view, function, module));
    found.sort_by_key(|one| (!one.inlined.is_empty(), std::cmp::Reverse(one.own.weight)));
    found
}

/// A pattern for a shortened name, without parameters.
fn shortened(text: &str) -> Result<Pattern, BadPattern> {
    let parts: Vec<String> = text.split(LEFT_OUT).map(regex_lite::escape).collect();
    Pattern::regex(&format!(r"^{}(\(.*)?$", parts.join(".*")))
}

/// An address, with its file if given: `0x1234`, `0x1234@libc.so.6`, `libc.so.6+0x1234`.
/// A library may be named without its full version.
fn by_address(text: &str) -> Result<Option<(Address, Option<Pattern>)>, BadPattern> {
    if let Some((module, start)) = parse_unnamed_function(text) {
        let module = Pattern::regex(&format!(r"(^|/){}(\.[0-9.]+)?$", regex_lite::escape(module)))?;
        return Ok(Some((Address(start), Some(module))));
    }
    let (address, module) = match text.split_once('@') {
        Some((address, module)) => (address, Some(module)),
        None => (text, None),
    };
    let digits = address.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let module = module.filter(|_| digits.is_some()).map(Pattern::parse).transpose()?;
    Ok(digits.map(|address| (Address(address), module)))
}

/// The sampled function that contains `address`.
fn at(
    view: &View<'_>,
    address: Address,
    module: Option<&Pattern>,
) -> Result<SampledFunction, FunctionChoiceError> {
    let (mut found, mut reasons) = (Vec::new(), Vec::new());
    let files = sampled_files(view, module);
    for &file in &files {
        let code = Binary::open(view.profile(), file, &Options::default())
            .and_then(|mut binary| binary.code(address));
        match code {
            Ok(code) => {
                let end = code.start.0.saturating_add(code.bytes.len() as u64);
                found.extend(sampled_within(view, file, code.start..Address(end)));
            }
            Err(why) => reasons.push(why),
        }
    }
    match (found.len(), &reasons[..], &files[..]) {
        (1, ..) => {
            let function = found.swap_remove(0);
            // A function with a symbol has a name.
            let named = sampled(view, Some(&Pattern::regex("")?), None).into_iter();
            let same = |named: &SampledFunction| (named.dso, named.start) == (function.dso, function.start);
            Ok(named.filter(|named| named.inlined.is_empty()).find(same).unwrap_or(function))
        }
        (0, _, []) => Err(FunctionChoiceError::NoFile),
        (0, [why], [_]) => Err(FunctionChoiceError::NoCode(address, why.to_string())),
        (0, ..) => Err(FunctionChoiceError::NotSampled(address)),
        (count, ..) => Err(FunctionChoiceError::SeveralFiles { count, list: list(view, &found) }),
    }
}

/// A function's name with its file; template arguments are omitted from a long name.
fn shown_name(function: &SampledFunction) -> String {
    if function.extent.is_some() {
        return function.name.clone();
    }
    let file = function.path.rsplit('/').next().unwrap_or_default();
    let is_long = function.name.chars().count() > LONG;
    let name = if is_long { collapse_templates(&function.name) } else { function.name.clone() };
    format!("{name}@{file}")
}

/// One function per line, in the form that the option accepts.
fn list(view: &View<'_>, functions: &[SampledFunction]) -> String {
    let precision = Precision::of(view);
    let line = |function: &SampledFunction| {
        let share = precision.percent(function.own.percent_of(view.whole()));
        format!("  {share:>7}  {}", shown_name(function))
    };
    let mut lines: Vec<String> = functions.iter().take(OFFERED).map(line).collect();
    if functions.len() > OFFERED {
        lines.push(format!("  … and {} more", functions.len() - OFFERED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use plumb_analyze::Filter;
    use plumb_fixtures::Made;

    use super::*;

    #[test]
    fn a_name_is_found_as_it_is_shown() {
        let mut made = Made::new();
        made.sample("app/1", "main@app;std::map<int, long>::operator[](int const&)@app", 10);
        let view = View::new(&made.profile, &Filter::default());
        let of = |text: &str| function(&view, text).map(|one| one.name).ok();
        let name = Some("std::map<int, long>::operator[](int const&)".to_owned());
        assert_eq!([of("std::map<…>::operator[]"), of("std::m…operator[]")], [name.clone(), name]);
        assert_eq!([of("std::map<…>::find"), of("map<…>::operator[]")], [None, None]);
    }

    #[test]
    fn a_function_without_a_symbol_is_in_its_file_or_a_version_of_it() {
        let is_in = |text: &str, path: &str| {
            let found = by_address(text).expect("no bad pattern")?;
            Some((found.0.0, found.1.is_none_or(|module| module.matches_path(path))))
        };
        let path = "/usr/lib/libz.so.1.2.13";
        assert_eq!(is_in("libz.so.1+0xaa60", path), Some((0xaa60, true)));
        assert_eq!(is_in("libz.so.1.2.13+0xaa60", path), Some((0xaa60, true)));
        assert_eq!(is_in("libz.so.1+0xaa60", "/usr/lib/libz.so.12"), Some((0xaa60, false)));
        assert_eq!(is_in("0xaa60@libz.so.1.2.13", path), Some((0xaa60, true)));
        assert_eq!((is_in("0xaa60", path), is_in("deflate", path)), (Some((0xaa60, true)), None));
    }

    #[test]
    fn a_function_of_a_script_is_found_by_its_name_and_its_source_file() {
        let mut made = Made::new();
        made.sample("python3/1", "main@python3;main:3@py:/app/main.py", 10);
        made.sample("python3/1", "main@python3;f:9@py:/app/main.py", 10);
        let view = View::new(&made.profile, &Filter::default());
        let of = |name| function(&view, name).map(|one| (one.name, one.path)).map_err(|why| why.to_string());
        let in_script = |name: &str| Ok((name.to_owned(), "/app/main.py".to_owned()));
        assert_eq!([of("f"), of("main@main.py")], [in_script("f"), in_script("main")]);
        assert!(of("main").is_err_and(|why| why.contains("main@main.py") && why.contains("main@python3")));
    }
}
