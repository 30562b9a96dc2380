//! The capability classes. All that depends on a class alone is here; what a grant
//! of it gives a sandbox is the policy crate's (`decide`, `effects`).

use std::fmt;

/// The kind of thing that a capability is about. A new class is a new version of the
/// formats, so the enum is exhaustive.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Outgoing HTTP: `network:host[:port]`, `network:*.host`, `network:*`
    Network,
    /// Files at or below a path: `workspace:/path`
    Workspace,
    /// A key-value bucket: `database:name`
    Database,
    /// Using a secret, or storing it if `mutates` has it: `secret:slug`
    Secret,
    /// Changes at a service, whose hosts the policy names: `external:service`
    External,
    /// Calls of another tool: `tool:id`
    Tool,
    /// Questions to the person or client behind the caller: `user:form`, `user:sample`,
    /// `user:roots`
    User,
    /// A class that this host does not know, or a known one with a scope that it does not have (`workspace:metadata`). It
    /// counts as a mutation and grants nothing.
    Other(String),
}

/// A table of a policy that a capability needs besides the rule that grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backing {
    /// `[[workspace]]`: a directory.
    Workspace,
    /// `[[secret]]`: where the value comes from and goes to. Storing a secret needs none.
    Secret,
    /// `[[service]]`: hosts.
    Service,
}

/// What the scopes of a class look like.
#[derive(Clone, Copy)]
pub(super) enum ScopeForm {
    /// A host pattern.
    Host,
    /// A path pattern.
    Path,
    /// A name, or `*`.
    Name,
    /// A name that may have `/` between its parts, or `*`.
    Slug,
    /// The id of a tool, or `*`.
    ToolId,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Anything without spaces.
    Unknown,
}

/// The fields of `requires`, each with the class whose scopes it lists, and whether it is ours and not AIP's: then
/// it may stand below `metadata.toolward.requires`, too.
const REQUIRED: &[(&str, Class, bool)] = &[
    ("network", Class::Network, AIP),
    ("workspace", Class::Workspace, OURS),
    ("database", Class::Database, OURS),
    ("secrets", Class::Secret, AIP),
    ("tools", Class::Tool, AIP),
    ("user", Class::User, OURS),
];

const AIP: bool = false;
const OURS: bool = true;

impl Class {
    /// The classes that this host knows, in order.
    pub const KNOWN: &[Class] = &[
        Class::Network,
        Class::Workspace,
        Class::Database,
        Class::Secret,
        Class::External,
        Class::Tool,
        Class::User,
    ];

    /// The word before the colon.
    pub fn as_str(&self) -> &str {
        match self {
            Class::Network => "network",
            Class::Workspace => "workspace",
            Class::Database => "database",
            Class::Secret => "secret",
            Class::External => "external",
            Class::Tool => "tool",
            Class::User => "user",
            Class::Other(name) => name,
        }
    }

    /// Whether a policy may give all of the class with one `*`.
    pub fn allows_wildcard(&self) -> bool {
        !matches!(self, Class::Secret | Class::Tool)
    }

    /// Whether it is known, and can be required without changing it.
    pub fn can_be_required(&self) -> bool {
        REQUIRED.iter().any(|(_, class, _)| class == self)
    }

    /// The table of a policy that it needs besides a rule.
    pub fn backing(&self) -> Option<Backing> {
        match self {
            Class::Workspace => Some(Backing::Workspace),
            Class::Secret => Some(Backing::Secret),
            Class::External => Some(Backing::Service),
            _ => None,
        }
    }

    /// Whether a call that may use it reaches the network.
    pub fn is_on_the_network(&self) -> bool {
        matches!(self, Class::Network | Class::External)
    }

    /// Whether a tested example gets it, as a temporary one.
    pub fn is_in_examples(&self) -> bool {
        matches!(self, Class::Workspace | Class::Database)
    }

    /// The fields of `requires` and their classes: first the fields of AIP.
    pub(crate) fn required() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(AIP).chain(Class::required_ours())
    }

    /// The fields that `metadata.toolward.requires` may have, too.
    pub(crate) fn required_ours() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(OURS)
    }

    fn fields(ours: bool) -> impl Iterator<Item = (&'static str, &'static Class)> {
        let fields = REQUIRED.iter().filter(move |(.., own)| *own == ours);
        fields.map(|(name, class, _)| (*name, class))
    }

    /// How tools.json spells it, where that differs.
    pub(crate) fn in_tools_json(&self) -> Option<&'static str> {
        match self {
            Class::Network => Some("net"),
            Class::Workspace => Some("fs"),
            Class::Database => Some("db"),
            _ => None,
        }
    }

    /// The class that only tools.json spells so.
    pub(crate) fn of_tools_json(name: &str) -> Option<&'static Class> {
        let mut known = Class::KNOWN.iter();
        known.find(|class| class.in_tools_json() == Some(name))
    }

    pub(super) fn scope(&self) -> ScopeForm {
        match self {
            Class::Network => ScopeForm::Host,
            Class::Workspace => ScopeForm::Path,
            Class::Database | Class::External => ScopeForm::Name,
            Class::Secret => ScopeForm::Slug,
            Class::Tool => ScopeForm::ToolId,
            Class::User => ScopeForm::OneOf(&["form", "sample", "roots"]),
            Class::Other(_) => ScopeForm::Unknown,
        }
    }

    pub(super) fn parse(text: &str) -> Class {
        let mut known = Class::KNOWN.iter();
        known
            .find(|class| class.as_str() == text)
            .cloned()
            .unwrap_or_else(|| Class::Other(text.to_owned()))
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_class_is_read_by_its_own_name_only() {
        for class in Class::KNOWN {
            assert_eq!(Class::parse(class.as_str()), *class);
            if let Some(name) = class.in_tools_json() {
                assert!(Class::KNOWN.iter().all(|other| other.as_str() != name));
                assert_eq!(Class::of_tools_json(name), Some(class));
            }
        }
        assert_eq!(Class::parse("storage"), Class::Other("storage".to_owned()));
    }

    #[test]
    fn fields_of_requires_are_those_of_aip_first() {
        let names: Vec<&str> = Class::required().map(|(name, _)| name).collect();
        let all = [
            "network",
            "secrets",
            "tools",
            "workspace",
            "database",
            "user",
        ];
        assert_eq!(names, all);
        let ours: Vec<&str> = Class::required_ours().map(|(name, _)| name).collect();
        assert_eq!(ours, ["workspace", "database", "user"]);
    }
}
