//! A new bundle: a contract, a driver for it, a test that passes unchanged, and the guest library
//! of the driver's language. It is a starting point, not a library of templates.

use std::path::Path;

use toolward_bundle::dev::BuildKind;
use toolward_signing::id::Id;
use toolward_signing::timestamp::Timestamp;
use toolward_support::report::codes;

use crate::build::{NewDriver, new_drivers};
use crate::error::AuthorError;
use crate::output;

#[cfg(test)]
mod tests;

/// The language of a new driver.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    /// How its source is built.
    pub kind: BuildKind,
    driver: &'static NewDriver,
}

impl Language {
    /// Returns all languages.
    pub fn all() -> impl Iterator<Item = Self> {
        new_drivers().map(|(kind, driver)| Self { kind, driver })
    }

    /// Returns the language with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::all().find(|one| one.word() == word)
    }

    /// Returns its word on the command line.
    pub fn word(self) -> &'static str {
        self.driver.word
    }
}

/// The id, publisher, time and driver's language of a new bundle.
#[derive(Debug, Clone)]
pub struct ScaffoldOptions {
    /// The id of the bundle and of its tool, such as `text.greet`.
    pub id: String,
    /// The name of the publisher.
    pub publisher: String,
    /// `created`, in seconds since 1970.
    pub created: i64,
    /// The driver's language.
    pub language: Language,
}

codes! {
    /// Why a new bundle can't be made.
    #[derive(Debug)]
    pub enum ScaffoldError: Error {
        /// `what` is `id` or `publisher`.
        Name(what: &'static str, source: toolward_signing::Refusal) -> source, ("{what}: {source}")
            => "use 2 to 80 lower-case ASCII letters, digits, dashes and dots, as in text.greet";
        Unwritable(what: &'static str) = "unwritable-value", ("{what} can't be written into a TOML file");
        /// `id` is unchecked, and may be cut.
        Entry(id: String, reason: String) = "scaffold-entry-invalid",
            "an entry of a new tools.json is not valid, or would be denied when the bundle is loaded",
            ("the entry {id} is not valid: {reason}")
            => "correct the flag, or the answer";
        /// The directory exists, or can't be written.
        Write(inner: AuthorError);
    }
}

/// Writes a new bundle to `directory`, which must not exist. Returns the names of the written
/// files.
///
/// # Errors
///
/// If a name is not an id, or the directory exists or can't be written.
pub fn create(directory: &Path, options: &ScaffoldOptions) -> Result<Vec<String>, ScaffoldError> {
    for (what, name) in [("id", &options.id), ("publisher", &options.publisher)] {
        Id::parse(name).map_err(|source| ScaffoldError::Name(what, source))?;
    }
    let created =
        Timestamp::from_unix(options.created).map_err(|_| ScaffoldError::Unwritable("the time"))?;
    // Below the tool's id, so that one prefix in a trust store covers both ids.
    let driver = format!("{}.driver", options.id);
    Id::parse(&driver).map_err(|source| ScaffoldError::Name("the driver's id", source))?;
    let row = options.language.driver;
    let values = [
        ("@ID@", options.id.clone()),
        ("@TOOL@", options.id.clone()),
        ("@PUBLISHER@", options.publisher.clone()),
        ("@CREATED@", created.to_string()),
        ("@TITLE@", title(&options.id)),
        ("@CRATE@", driver.replace('.', "-")),
        ("@DRIVER@", driver.clone()),
        ("@BUILD@", row.build.replace("world = ", WORLDS)),
    ];
    let fill = |template: &str| {
        let empty = template.to_owned();
        (values.iter()).fold(empty, |text, (key, value)| text.replace(key, value))
    };
    let templates = SHARED.iter().chain(row.templates);
    let templates = templates.map(|(name, template)| (fill(name), fill(template)));
    let library = row.library.iter();
    let library = library.map(|(name, text)| (format!("driver/{name}"), (*text).to_owned()));
    let files: Vec<(String, String)> = templates.chain(library).collect();
    let written = files.iter();
    let written = written.map(|(name, text)| (name.as_str(), text.as_bytes()));
    output::directory(directory, written)?;
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

/// Replaces `world = ` in a `[[build]]`: a comment above the line states what other worlds are for.
const WORLDS: &str =
    "# Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\nworld = ";

/// The documents, which are the same for all languages.
const SHARED: &[(&str, &str)] = &[
    (
        "bundle.toml",
        include_str!("scaffold/shared/bundle.toml.in"),
    ),
    (
        "tools/@TOOL@/TOOL.md",
        include_str!("scaffold/shared/TOOL.md.in"),
    ),
    (
        "drivers/@DRIVER@/DRIVER.md",
        include_str!("scaffold/shared/DRIVER.md.in"),
    ),
];

/// `text.word-count` → `Text word count`.
fn title(id: &str) -> String {
    let words = id.replace(['.', '-'], " ");
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => format!("{}{}", first.to_ascii_uppercase(), characters.as_str()),
        None => words,
    }
}
