//! A new bundle: a contract, a driver that carries it out, and a test, all of
//! which pass as they are. A starting point, not a library of templates.

use std::path::{Path, PathBuf};

use toolward_signing::id::Id;
use toolward_signing::timestamp::Timestamp;

use crate::error::AuthorError;
use crate::output;

/// Where the driver's crate gets the guest SDK from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sdk {
    /// A directory with the crate, as Cargo's `path`.
    Path(PathBuf),
    /// A published version.
    Version(String),
}

/// What the new bundle is called, and by whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// The id of the bundle and of its tool, such as `text.greet`.
    pub id: String,
    /// Who will sign it.
    pub publisher: String,
    /// Seconds since 1970: what `created` says.
    pub created: i64,
    /// Where the driver's crate gets the guest SDK from.
    pub sdk: Sdk,
}

/// Why a new bundle can't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScaffoldError {
    /// The id or the publisher is not an id.
    #[error("{what}: {refusal}")]
    Name {
        /// `id` or `publisher`.
        what: &'static str,
        /// Why not.
        #[source]
        refusal: toolward_signing::Refusal,
    },
    /// The time or a path can't be written into a file.
    #[error("{what} can't be written into a TOML file")]
    Unwritable {
        /// What it is.
        what: &'static str,
    },
    /// The directory exists, or can't be written.
    #[error(transparent)]
    Write(#[from] AuthorError),
}

impl ScaffoldError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Name { refusal, .. } => refusal.code(),
            Self::Unwritable { .. } => "unwritable-value",
            Self::Write(error) => error.code(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Name { .. } => Some(
                "use 2 to 80 lower-case ASCII letters, digits, dashes and dots, as in text.greet"
                    .to_owned(),
            ),
            Self::Unwritable { .. } => None,
            Self::Write(error) => error.hint(),
        }
    }
}

/// Writes a new bundle to `directory`, which must not exist, and gives the names
/// of the files written.
///
/// # Errors
///
/// When a name is not an id, or the directory exists or can't be written.
pub fn create(directory: &Path, options: &Options) -> Result<Vec<String>, ScaffoldError> {
    for (what, name) in [("id", &options.id), ("publisher", &options.publisher)] {
        Id::parse(name).map_err(|refusal| ScaffoldError::Name { what, refusal })?;
    }
    let created = Timestamp::from_unix(options.created)
        .map_err(|_| ScaffoldError::Unwritable { what: "the time" })?;
    // Below the tool's id, so that one prefix in a trust store covers both.
    let driver = format!("{}.driver", options.id);
    Id::parse(&driver).map_err(|refusal| ScaffoldError::Name {
        what: "the driver's id",
        refusal,
    })?;
    let values = [
        ("@ID@", options.id.clone()),
        ("@TOOL@", options.id.clone()),
        ("@PUBLISHER@", options.publisher.clone()),
        ("@CREATED@", created.to_string()),
        ("@TITLE@", title(&options.id)),
        ("@CRATE@", driver.replace('.', "-")),
        ("@DRIVER@", driver.clone()),
        ("@SDK@", dependency(&options.sdk)?),
    ];
    let fill = |template: &str| {
        values
            .iter()
            .fold(template.to_owned(), |text, (key, value)| {
                text.replace(key, value)
            })
    };
    let files = [
        (
            "bundle.toml".to_owned(),
            include_str!("scaffold/template/bundle.toml.in"),
        ),
        (
            format!("tools/{}/TOOL.md", options.id),
            include_str!("scaffold/template/TOOL.md.in"),
        ),
        (
            format!("drivers/{driver}/DRIVER.md"),
            include_str!("scaffold/template/DRIVER.md.in"),
        ),
        (
            "driver/Cargo.toml".to_owned(),
            include_str!("scaffold/template/Cargo.toml.in"),
        ),
        (
            "driver/src/lib.rs".to_owned(),
            include_str!("scaffold/template/lib.rs.in"),
        ),
        (
            ".gitignore".to_owned(),
            include_str!("scaffold/template/gitignore.in"),
        ),
        (
            "README.md".to_owned(),
            include_str!("scaffold/template/README.md.in"),
        ),
    ]
    .map(|(name, template)| (name, fill(template)));
    output::directory(
        directory,
        files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes())),
    )?;
    Ok(files.into_iter().map(|(name, _)| name).collect())
}

/// `text.word-count` → `Text word count`.
fn title(id: &str) -> String {
    let words = id.replace(['.', '-'], " ");
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => format!("{}{}", first.to_ascii_uppercase(), characters.as_str()),
        None => words,
    }
}

fn dependency(sdk: &Sdk) -> Result<String, ScaffoldError> {
    match sdk {
        Sdk::Version(version) => Ok(format!("\"{version}\"")),
        Sdk::Path(path) => {
            let path = path.to_str().ok_or(ScaffoldError::Unwritable {
                what: "the path of the guest SDK",
            })?;
            Ok(format!(
                "{{ path = {} }}",
                toml::Value::String(path.to_owned())
            ))
        }
    }
}
