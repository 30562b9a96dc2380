//! `[[document]]`: the prompts and resources of bundles that clients can see, and the names that
//! they may have instead of their ids. Which tools clients see depends on grants instead.

use std::fmt;

use crate::error::{self, PolicyError, Refuse as _};
use crate::fields::{Fields, list, optional, required};
use crate::name::{Publisher, ToolPattern, matches_segments};
use crate::toml_text::{self, pair};

/// The longest URI, in bytes.
const MAX_URI_BYTES: usize = 512;

/// The documents that a publisher's bundles may show. Empty lists show nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRule {
    /// The publisher of the bundle.
    pub publisher: Publisher,
    /// The ids of the bundles; in a file, by default all bundles of the publisher. Never with
    /// `@major`.
    pub bundle: ToolPattern,
    /// The ids of prompts. Never with `@major`.
    pub prompts: Vec<ToolPattern>,
    /// Paths of resources, below `resources/`.
    pub resources: Vec<FilePattern>,
    /// Names that these prompts may have instead of their ids.
    pub names: Vec<String>,
    /// URIs and URI templates that these resources may have instead of the host's URIs.
    pub uris: Vec<String>,
}

impl DocumentRule {
    /// A rule about all bundles of a publisher that shows nothing.
    pub fn new(publisher: Publisher) -> Self {
        Self {
            publisher,
            bundle: ToolPattern::all(),
            prompts: Vec::new(),
            resources: Vec::new(),
            names: Vec::new(),
            uris: Vec::new(),
        }
    }

    /// The table as TOML that can be appended to a policy's file.
    pub fn to_toml(&self) -> String {
        let mut lines = vec![
            "[[document]]".to_owned(),
            pair("publisher", self.publisher.as_str()),
        ];
        if self.bundle != ToolPattern::all() {
            lines.push(pair("bundle", &self.bundle.to_string()));
        }
        let prompts = self.prompts.iter().map(ToString::to_string);
        let resources = self.resources.iter().map(ToString::to_string);
        let lists = [
            toml_text::list("prompts", prompts),
            toml_text::list("resources", resources),
            toml_text::list("names", &self.names),
            toml_text::list("uris", &self.uris),
        ];
        lines.extend(lists.into_iter().filter(|line| !line.ends_with("[]")));
        lines.join("\n") + "\n"
    }

    pub(crate) fn covers_prompt(&self, id: &str) -> bool {
        self.prompts.iter().any(|pattern| pattern.matches(id, 0))
    }

    pub(crate) fn covers_resource(&self, path: &str) -> bool {
        self.resources.iter().any(|pattern| pattern.matches(path))
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let publisher = required(fields, "publisher", Publisher::parse)?;
        let bundle = optional(fields, "bundle", id_pattern)?;
        Ok(Self {
            publisher,
            bundle: bundle.unwrap_or_else(ToolPattern::all),
            prompts: list(fields, "prompts", id_pattern)?,
            resources: list(fields, "resources", FilePattern::parse)?,
            names: list(fields, "names", read_name)?,
            uris: list(fields, "uris", read_uri)?,
        })
    }
}

/// A pattern of file paths, whose segments may be `*`. `*` stands for one whole segment; as the
/// last segment, it stands for one or more.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePattern(String);

impl FilePattern {
    /// Reads a path with `*` for whole segments.
    ///
    /// # Errors
    /// If the text is not such a pattern.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let segment = |part: &str| {
            part == "*" || (!part.is_empty() && !part.starts_with('.') && part.chars().all(plain))
        };
        if text.len() <= 155 && text.split('/').all(segment) {
            return Ok(Self(text.to_owned()));
        }
        Err(error::FILE
            .expected(
                "a path below `resources/`, with `*` for whole segments",
                text,
            )
            .hinted("write for example \"style.txt\", \"images/*\" or \"*\""))
    }

    /// Whether the pattern matches a path below `resources/`.
    pub fn matches(&self, path: &str) -> bool {
        matches_segments(self.0.split('/'), path.split('/'))
    }
}

impl fmt::Display for FilePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The documents of one bundle that a policy shows. Made by
/// [`Policy::documents_of`](crate::Policy::documents_of).
#[derive(Debug, Clone)]
pub struct DocumentAccess<'p> {
    pub(crate) rules: Vec<&'p DocumentRule>,
    pub(crate) denied: bool,
}

impl DocumentAccess<'_> {
    /// Whether a `[[deny]]` hides all documents, even if a `[[document]]` shows them.
    pub fn is_denied(&self) -> bool {
        self.denied
    }

    /// Whether the prompt with this id may be shown.
    pub fn prompt(&self, id: &str) -> bool {
        self.rules.iter().any(|rule| rule.covers_prompt(id))
    }

    /// Whether a prompt may have this name instead of its id.
    pub fn prompt_name(&self, id: &str, name: &str) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.covers_prompt(id));
        rules.any(|rule| rule.names.iter().any(|own| own == name))
    }

    /// Whether the file at this path below `resources/` may be shown.
    pub fn resource(&self, path: &str) -> bool {
        self.rules.iter().any(|rule| rule.covers_resource(path))
    }

    /// Whether a resource may have this URI or template instead of the host's URI.
    pub fn resource_uri(&self, path: &str, uri: &str) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.covers_resource(path));
        rules.any(|rule| rule.uris.iter().any(|own| own == uri))
    }
}

/// An id with `*` for whole segments, without a version.
pub(crate) fn id_pattern(text: &str) -> Result<ToolPattern, PolicyError> {
    let pattern = ToolPattern::parse(text).ok();
    pattern.filter(|_| !text.contains('@')).ok_or_else(|| {
        error::TOOL
            .expected("an id with `*` for whole segments, without `@`", text)
            .hinted("write for example \"acme.notes\", \"acme.*\" or \"*\"")
    })
}

/// The name of a prompt or a tool.
pub(crate) fn read_name(text: &str) -> Result<String, PolicyError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(error::WRONG_VALUE
        .expected("a name of 1 to 64 letters, digits, `_`, `-` and `.`", text)
        .hinted("each name is written out: `*` stands for nothing here"))
}

/// A URI or URI template.
pub(crate) fn read_uri(text: &str) -> Result<String, PolicyError> {
    let good = text.len() <= MAX_URI_BYTES
        && text.split_once(':').is_some_and(|(scheme, rest)| {
            !scheme.is_empty() && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_graphic())
        });
    if good {
        return Ok(text.to_owned());
    }
    Err(error::WRONG_VALUE
        .expected("a URI or a URI template", text)
        .hinted("write it as the bundle does, for example \"records://{number}/data\""))
}

/// Checks the properties that only a rule built in code can get wrong.
pub(crate) fn check(rule: &DocumentRule) -> Result<(), PolicyError> {
    for pattern in rule.prompts.iter().chain([&rule.bundle]) {
        id_pattern(&pattern.to_string())?;
    }
    for name in &rule.names {
        read_name(name)?;
    }
    for uri in &rule.uris {
        read_uri(uri)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Policy, PolicyParts};

    const POLICY: &str = r#"
        [[document]]
        publisher = "acme"
        bundle = "acme.notes"
        prompts = ["acme.notes.*"]
        resources = ["style.txt", "images/*"]
        names = ["summarise"]
        uris = ["notes://{number}"]

        [[document]]
        publisher = "other"
        prompts = ["*"]
    "#;

    #[test]
    fn documents_are_shown_by_publisher_bundle_and_name_and_else_not() {
        let policy = Policy::from_toml(POLICY).unwrap();
        let notes = policy.documents_of("acme", "acme.notes");
        assert!(notes.prompt("acme.notes.sum") && !notes.prompt("acme.other"));
        assert!(notes.resource("style.txt") && notes.resource("images/a/b.png"));
        assert!(!notes.resource("images") && !notes.resource("secret.txt"));
        assert!(notes.prompt_name("acme.notes.sum", "summarise"));
        assert!(!notes.prompt_name("acme.notes.sum", "other"));
        assert!(!notes.prompt_name("acme.other", "summarise"));
        assert!(notes.resource_uri("style.txt", "notes://{number}"));
        assert!(!notes.resource_uri("secret.txt", "notes://{number}"));
        for (publisher, bundle) in [("acme", "acme.other"), ("else", "acme.notes")] {
            let access = policy.documents_of(publisher, bundle);
            assert!(!access.prompt("acme.notes.sum") && !access.resource("style.txt"));
        }
        let other = policy.documents_of("other", "any.bundle");
        assert!(other.prompt("any.prompt") && !other.resource("style.txt"));
        let empty = Policy::empty();
        assert!(
            !empty
                .documents_of("acme", "acme.notes")
                .prompt("acme.notes.sum")
        );
    }

    #[test]
    fn who_is_denied_everything_shows_nothing() {
        for deny in ["[[deny]]\npublisher = \"acme\"", "[[deny]]"] {
            let policy = Policy::from_toml(&format!("{POLICY}\n{deny}\n")).unwrap();
            let access = policy.documents_of("acme", "acme.notes");
            assert!(!access.prompt("acme.notes.sum") && !access.resource("style.txt"));
            assert!(access.is_denied());
        }
        for deny in [
            "publisher = \"other\"",
            "tool = \"a.b\"",
            "capabilities = []",
        ] {
            let policy = Policy::from_toml(&format!("{POLICY}\n[[deny]]\n{deny}\n")).unwrap();
            let access = policy.documents_of("acme", "acme.notes");
            assert!(access.prompt("acme.notes.sum") && !access.is_denied());
        }
    }

    #[test]
    fn layers_show_what_each_of_them_shows() {
        let later = POLICY.replace("acme.notes.*", "acme.other");
        let policy = Policy::from_toml(POLICY).unwrap();
        let policy = policy.layer(Policy::from_toml(&later).unwrap()).unwrap();
        let access = policy.documents_of("acme", "acme.notes");
        assert!(access.prompt("acme.notes.sum") && access.prompt("acme.other"));
    }

    #[test]
    fn a_rule_that_is_written_is_read_as_the_same_rule() {
        let policy = Policy::from_toml(POLICY).unwrap();
        let written: String = policy
            .tables
            .documents
            .iter()
            .map(DocumentRule::to_toml)
            .collect();
        assert_eq!(written.lines().count(), 10);
        let read = Policy::from_toml(&written).unwrap();
        assert_eq!(read.tables.documents, policy.tables.documents);
    }

    #[test]
    fn rules_built_in_code_are_held_to_the_same_rules() {
        let build = |rule| {
            let mut parts = PolicyParts::default();
            parts.tables.documents.push(rule);
            parts.build().unwrap_err()
        };
        let mut rule = DocumentRule::new(Publisher::parse("acme").unwrap());
        rule.prompts = vec![ToolPattern::parse("a.b@1").unwrap()];
        let refused = build(rule.clone());
        assert_eq!(refused.code(), "policy-tool");
        rule.prompts.clear();
        rule.names = vec!["*".to_owned()];
        let refused = build(rule);
        assert_eq!(refused.code(), "policy-wrong-value");
    }
}
