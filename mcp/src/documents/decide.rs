//! Decides which prompts and resources of a bundle are served, under which names, and why the
//! others are not. The server and `show --policy` share this decision.

use std::collections::BTreeSet;
use std::fmt;

use toolward_bundle::content::Content;
use toolward_bundle::documents::Located;
use toolward_bundle::shown::{MAX_RESOURCE, ResourceEntry};
use toolward_bundle::text::visible_line;
use toolward_contract::prompt::{Part, Prompt};
use toolward_contract::resource::UriTemplate;
use toolward_policy::{DocumentAccess, DocumentRule, FilePattern, Policy, Publisher, ToolPattern};

use super::Provenance;

/// The kind of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A prompt.
    Prompt,
    /// A file.
    Resource,
    /// A file that is filled in with the values in its URI.
    Template,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        })
    }
}

/// Why a document is not served. Displayed as half a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hidden {
    /// No `[[document]]` table is about it.
    NotGiven,
    /// A `[[deny]]` table is about everything of its publisher.
    Denied,
    /// The file is larger than a client may get at once.
    TooLarge,
    /// The prompt embeds this file, which is not served.
    Embeds(String),
    /// The file is a template, but no URI template can be made for it, or it is not text.
    NoTemplate,
}

impl fmt::Display for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven => f.write_str("no [[document]] is about it"),
            Self::Denied => f.write_str("a [[deny]] is about everything of its publisher"),
            Self::TooLarge => write!(f, "it is larger than {MAX_RESOURCE} bytes"),
            Self::Embeds(path) => write!(f, "it embeds {path}, which is not served"),
            Self::NoTemplate => f.write_str("it is no text that a URI fills in"),
        }
    }
}

/// The decision about one document of a bundle.
#[derive(Debug, Clone)]
pub struct DocumentVerdict<'c> {
    /// The bundle that it comes from.
    pub content: &'c Content,
    /// The kind of the document.
    pub kind: Kind,
    /// A prompt's id, or a file's path below `resources/`. Policies use this name.
    pub id: &'c str,
    /// The name, URI or URI template under which it is served, or would be.
    pub name: String,
    /// The name that it asks for but does not get.
    pub asks: Option<String>,
    /// Why it is not served; `None` if it is served.
    pub hidden: Option<Hidden>,
    pub(super) entry: Entry<'c>,
}

impl DocumentVerdict<'_> {
    /// Whether a name means this document: its id in policies, its name for clients, the name that
    /// it asks for, its file, or its bundle.
    #[must_use]
    pub fn is_meant(&self, name: &str) -> bool {
        let file = name.strip_prefix("resources/");
        self.id == name
            || self.name == name
            || self.asks.as_deref() == Some(name)
            || self.content.manifest.id.as_str() == name
            || (self.kind != Kind::Prompt && file == Some(self.id))
    }
}

/// The document's entry in its bundle.
#[derive(Debug, Clone)]
pub(super) enum Entry<'c> {
    Prompt(&'c Located<Prompt>),
    Resource(&'c ResourceEntry),
    Template(&'c ResourceEntry, Option<UriTemplate>),
}

/// Decides about each document of a bundle under a policy: files first, in the bundle's
/// order. Does not check whether several bundles claim one name.
///
/// ```
/// use toolward_bundle::content::Content;
/// use toolward_mcp::documents::{Hidden, Kind, DocumentVerdict, verdicts};
/// use toolward_policy::Policy;
///
/// fn hidden_prompts(content: &Content, policy: &Policy) {
///     for DocumentVerdict { kind, name, hidden, .. } in verdicts(content, policy) {
///         match (kind, hidden) {
///             (Kind::Prompt, Some(Hidden::NotGiven)) => println!("{name}: add a [[document]]"),
///             (Kind::Prompt, Some(hidden)) => println!("{name}: {hidden}"),
///             _ => {}
///         }
///     }
/// }
/// ```
#[must_use]
pub fn verdicts<'c>(content: &'c Content, policy: &Policy) -> Vec<DocumentVerdict<'c>> {
    let provenance = Provenance::of(content);
    let access = policy.documents_of(&provenance.publisher, &provenance.bundle);
    let files = content.resources.iter();
    let mut verdicts: Vec<DocumentVerdict<'c>> = files
        .map(|entry| resource(content, entry, &provenance, &access))
        .collect();
    let served: BTreeSet<&'c str> = verdicts
        .iter()
        .filter(|verdict| verdict.hidden.is_none())
        .filter_map(|verdict| match verdict.entry {
            Entry::Resource(entry) => Some(entry.path.as_str()),
            _ => None,
        })
        .collect();
    let prompts = content.prompts.iter();
    verdicts.extend(prompts.map(|entry| prompt(content, entry, &served, &access)));
    verdicts
}

fn resource<'c>(
    content: &'c Content,
    entry: &'c ResourceEntry,
    provenance: &Provenance,
    access: &DocumentAccess<'_>,
) -> DocumentVerdict<'c> {
    let id = entry.name();
    let given = access.resource(id);
    let hidden = match entry.is_servable() {
        _ if !given => Some(withheld(access)),
        false => Some(Hidden::TooLarge),
        true => None,
    };
    let host = provenance.uri(id);
    let about = entry.about.as_ref();
    let Some(about) = about.filter(|about| about.is_template()) else {
        let asked = about.and_then(|about| about.uri.clone());
        let (own, asks) = split(asked, |own| access.resource_uri(id, own));
        return DocumentVerdict {
            content,
            kind: Kind::Resource,
            id,
            name: own.unwrap_or(host),
            asks,
            hidden,
            entry: Entry::Resource(entry),
        };
    };
    let asked = about.uri_template.clone();
    let (own, asks) = split(asked, |own| access.resource_uri(id, own.as_str()));
    let names = about.arguments.iter();
    let names: String = names.map(|one| format!("/{{{}}}", one.name)).collect();
    let host = host + &names;
    let template = own.or_else(|| UriTemplate::of_host(&host).ok());
    let no_template = template.is_none() || entry.text().is_none();
    DocumentVerdict {
        content,
        kind: Kind::Template,
        id,
        name: template
            .as_ref()
            .map_or(host, |own| own.as_str().to_owned()),
        asks: asks.map(|asks| asks.as_str().to_owned()),
        hidden: hidden.or(no_template.then_some(Hidden::NoTemplate)),
        entry: Entry::Template(entry, template),
    }
}

fn prompt<'c>(
    content: &'c Content,
    entry: &'c Located<Prompt>,
    served: &BTreeSet<&str>,
    access: &DocumentAccess<'_>,
) -> DocumentVerdict<'c> {
    let prompt = &entry.value;
    let id = prompt.id.as_str();
    let embedded = prompt.messages.iter();
    let mut embedded = embedded.filter_map(|message| match &message.part {
        Part::Media { path, .. } | Part::File { path, .. } => Some(path),
        _ => None,
    });
    let hidden = match access.prompt(id) {
        false => Some(withheld(access)),
        // A prompt may only embed files that policy also serves.
        true => embedded
            .find(|path| !served.contains(path.as_str()))
            .map(|path| Hidden::Embeds(path.clone())),
    };
    let asked = prompt.mcp_name.clone();
    let (own, asks) = split(asked, |own| access.prompt_name(id, own));
    DocumentVerdict {
        content,
        kind: Kind::Prompt,
        id,
        name: own.unwrap_or_else(|| id.to_owned()),
        asks,
        hidden,
        entry: Entry::Prompt(entry),
    }
}

/// Returns a requested name as the first value if policy gives it, otherwise as the second.
fn split<T>(asked: Option<T>, given: impl FnOnce(&T) -> bool) -> (Option<T>, Option<T>) {
    match asked {
        Some(asked) if given(&asked) => (Some(asked), None),
        asked => (None, asked),
    }
}

fn withheld(access: &DocumentAccess<'_>) -> Hidden {
    match access.is_denied() {
        true => Hidden::Denied,
        false => Hidden::NotGiven,
    }
}

/// The most characters of a requested name.
const MAX_SHOWN_CHARS: usize = 1000;

/// Suggests `[[document]]` tables for the documents that no table is about yet, one table for each
/// bundle. The names that documents ask for are commented out, since they may imitate other names.
#[must_use]
pub fn suggest<'v, 'c: 'v>(verdicts: impl IntoIterator<Item = &'v DocumentVerdict<'c>>) -> String {
    let mut tables: Vec<(DocumentRule, String)> = Vec::new();
    for verdict in verdicts {
        // A new `[[document]]` table does not remove the other reasons.
        if verdict.hidden != Some(Hidden::NotGiven) {
            continue;
        }
        let (Ok(publisher), Ok(bundle)) = (
            Publisher::parse(&verdict.content.origin.publisher()),
            ToolPattern::parse(verdict.content.manifest.id.as_str()),
        ) else {
            continue;
        };
        let same = |rule: &DocumentRule| rule.publisher == publisher && rule.bundle == bundle;
        if !tables.last().is_some_and(|(rule, _)| same(rule)) {
            let mut rule = DocumentRule::new(publisher);
            rule.bundle = bundle;
            tables.push((rule, String::new()));
        }
        let Some((rule, asked)) = tables.last_mut() else {
            continue;
        };
        let key = match verdict.kind {
            Kind::Prompt => {
                rule.prompts.extend(ToolPattern::parse(verdict.id).ok());
                "names"
            }
            Kind::Resource | Kind::Template => {
                rule.resources.extend(FilePattern::parse(verdict.id).ok());
                "uris"
            }
        };
        if let Some(asks) = &verdict.asks {
            let asks = visible_line(asks, MAX_SHOWN_CHARS);
            asked.push_str(&format!("# {key}: {} asks to go by {asks}\n", verdict.id));
        }
    }
    let tables = tables.iter().map(|(rule, asked)| {
        let head = "# For MCP clients to see; no tool needs it.\n";
        format!("{head}{}{asked}", rule.to_toml())
    });
    tables.collect::<Vec<_>>().join("\n")
}
