//! The tables of a profile being read: columns that only some versions have, with accessors that hide the differences.
//!
//! Up to version 55 each thread has all its tables; from 56 on strings and from 60 on all tables but samples are shared. From 66 on a stack's caller
//! is stored as an offset, from 70 on a frame has its library itself, and from 71 (frames) and 75 (functions) on flags mark missing
//! values.

use std::borrow::Cow;

use serde::Deserialize;

/// The newest version that is supported.
pub(super) const NEWEST: u64 = 75;

#[derive(Deserialize)]
pub(super) struct File<'a> {
    pub meta: Meta,
    #[serde(borrow, default)]
    pub libs: Vec<Lib<'a>>,
    /// Data shared by all threads.
    #[serde(borrow, default)]
    pub shared: Option<Thread<'a>>,
    #[serde(borrow)]
    pub threads: Vec<Thread<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Meta {
    #[serde(default)]
    pub preprocessed_profile_version: u64,
    /// Interval between samples in milliseconds.
    #[serde(default)]
    pub interval: f64,
    /// Start in milliseconds since 1970.
    #[serde(default)]
    pub start_time: f64,
    #[serde(default)]
    pub categories: Option<Vec<Category>>,
    #[serde(default)]
    pub product: Option<String>,
    #[serde(default)]
    pub imported_from: Option<String>,
    #[serde(default)]
    pub oscpu: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Category {
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Lib<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    /// For ELF files, the build id.
    #[serde(borrow, default)]
    pub code_id: Option<Cow<'a, str>>,
}

impl Lib<'_> {
    /// Returns its path, or only its name.
    pub fn called(&self) -> &str {
        if self.path.is_empty() { &self.name } else { &self.path }
    }
}

/// A thread, or the data shared by all.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Thread<'a> {
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    /// A number, or a text with a number and a suffix.
    pub pid: serde_json::Value,
    pub tid: serde_json::Value,
    pub samples: Samples,
    #[serde(borrow)]
    pub string_array: Vec<Cow<'a, str>>,
    pub stack_table: Stacks,
    pub frame_table: Frames,
    func_table: Functions,
    resource_table: Resources,
    sources: Sources,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Samples {
    pub stack: Vec<Option<usize>>,
    /// Times in milliseconds.
    pub time: Option<Vec<f64>>,
    pub time_deltas: Option<Vec<f64>>,
    pub weight: Option<Vec<Option<f64>>>,
    pub weight_type: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Stacks {
    pub frame: Vec<usize>,
    prefix: Vec<Option<usize>>,
    prefix_offset: Vec<usize>,
}

impl Stacks {
    /// Returns the row of the caller, `None` at the root.
    pub fn caller(&self, row: usize) -> Option<usize> {
        match self.prefix.get(row) {
            Some(prefix) => *prefix,
            None => match self.prefix_offset.get(row) {
                None | Some(0) => None,
                // An offset that leads before the first row is invalid.
                Some(offset) => Some(row.checked_sub(*offset).unwrap_or(usize::MAX)),
            },
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Frames {
    address: Vec<Option<i64>>,
    inline_depth: Vec<Option<u32>>,
    category: Vec<Option<usize>>,
    func: Vec<usize>,
    line: Vec<Option<u32>>,
    lib: Vec<Option<i64>>,
    flags: Vec<u32>,
}

impl Frames {
    fn flag(&self, row: usize, bit: u32) -> Option<bool> {
        self.flags.get(row).map(|flags| flags & bit != 0)
    }

    pub fn function(&self, row: usize) -> Option<usize> {
        self.func.get(row).copied()
    }

    pub fn is_inlined(&self, row: usize) -> bool {
        self.flag(row, 1)
            .unwrap_or_else(|| self.inline_depth.get(row).copied().flatten().is_some_and(|depth| depth > 0))
    }

    /// Returns the address in the library.
    pub fn address(&self, row: usize) -> Option<u64> {
        let address = self.address.get(row).copied().flatten().filter(|_| self.flag(row, 2) != Some(false));
        address.and_then(|address| u64::try_from(address).ok())
    }

    pub fn category(&self, row: usize) -> Option<usize> {
        self.category.get(row).copied().flatten().filter(|_| self.flag(row, 4) != Some(false))
    }

    pub fn line(&self, row: usize) -> u32 {
        self.line.get(row).copied().flatten().filter(|_| self.flag(row, 16) != Some(false)).unwrap_or(0)
    }

    fn library(&self, row: usize) -> Option<usize> {
        let lib = self.lib.get(row).copied().flatten().filter(|_| self.flag(row, 2) != Some(false));
        lib.and_then(|lib| usize::try_from(lib).ok())
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Functions {
    name: Vec<usize>,
    resource: Vec<Option<i64>>,
    file_name: Vec<Option<usize>>,
    source: Vec<Option<usize>>,
    flags: Vec<u32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    lib: Vec<Option<usize>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Sources {
    filename: Vec<Option<usize>>,
}

impl<'a> Thread<'a> {
    fn text<'t>(&'t self, strings: &'t [Cow<'a, str>], index: usize) -> Option<&'t str> {
        strings.get(index).or_else(|| self.string_array.get(index)).map(|text| &**text)
    }

    /// Returns the name of a function. `strings` are the shared ones, if any.
    pub fn name<'t>(&'t self, strings: &'t [Cow<'a, str>], function: usize) -> Option<&'t str> {
        self.text(strings, *self.func_table.name.get(function)?)
    }

    /// Returns the source file of a function.
    pub fn file<'t>(&'t self, strings: &'t [Cow<'a, str>], function: usize) -> Option<&'t str> {
        let functions = &self.func_table;
        if functions.flags.get(function).is_some_and(|flags| flags & 8 == 0) {
            return None;
        }
        let name = match functions.file_name.get(function) {
            Some(name) => (*name)?,
            None => (*self.sources.filename.get((*functions.source.get(function)?)?)?)?,
        };
        self.text(strings, name)
    }

    /// Returns the library of a frame.
    pub fn library(&self, frame: usize, function: usize) -> Option<usize> {
        let resource = self.func_table.resource.get(function).copied().flatten();
        let by_resource = || *self.resource_table.lib.get(usize::try_from(resource?).ok()?)?;
        self.frame_table.library(frame).or_else(by_resource)
    }
}
