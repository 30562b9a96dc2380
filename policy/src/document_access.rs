//! What a policy shows of a bundle's prompts and resources.

use crate::document::DocumentRule;
use crate::name::ToolPattern;
use crate::policy::Policy;

/// What a policy says of the documents of one bundle. Made by [`Policy::documents_of`].
#[derive(Debug, Clone)]
pub struct DocumentAccess<'p> {
    rules: Vec<&'p DocumentRule>,
    denied: bool,
}

impl DocumentAccess<'_> {
    /// Whether a `[[deny]]` hides all of them, even those that a `[[document]]` shows.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.denied
    }

    /// Whether the prompt with this id may be shown.
    #[must_use]
    pub fn prompt(&self, id: &str) -> bool {
        self.rules.iter().any(|rule| rule.covers_prompt(id))
    }

    /// Whether it may go by a name of its own.
    #[must_use]
    pub fn prompt_name(&self, id: &str, name: &str) -> bool {
        let given = |rule: &&DocumentRule| rule.names.iter().any(|own| own == name);
        let mut rules = self.rules.iter().filter(|rule| rule.covers_prompt(id));
        rules.any(given)
    }

    /// Whether the file at this path below `resources/` may be shown.
    #[must_use]
    pub fn resource(&self, path: &str) -> bool {
        self.rules.iter().any(|rule| rule.covers_resource(path))
    }

    /// Whether it may go by a URI or a template of its own.
    #[must_use]
    pub fn resource_uri(&self, path: &str, uri: &str) -> bool {
        let given = |rule: &&DocumentRule| rule.uris.iter().any(|own| own == uri);
        let mut rules = self.rules.iter().filter(|rule| rule.covers_resource(path));
        rules.any(given)
    }
}

impl Policy {
    /// `[[document]]`: which prompts and resources are shown.
    #[must_use]
    pub fn documents(&self) -> &[DocumentRule] {
        &self.documents
    }

    /// What is shown of a bundle's prompts and resources. Nothing where a `[[deny]]` is about all tools
    /// of its publisher and everything that they declare.
    #[must_use]
    pub fn documents_of(&self, publisher: &str, bundle: &str) -> DocumentAccess<'_> {
        let denied = self.denies().any(|deny| {
            let of = deny.publisher.as_ref();
            of.is_none_or(|of| of.as_str() == publisher)
                && deny.tool == ToolPattern::all()
                && deny.capabilities.is_none()
        });
        let of = |rule: &&DocumentRule| {
            !denied && rule.publisher.as_str() == publisher && rule.bundle.matches(bundle, 0)
        };
        DocumentAccess {
            rules: self.documents.iter().filter(of).collect(),
            denied,
        }
    }
}
