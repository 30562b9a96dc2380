//! The capability classes. All that depends on a class alone is a row here; what a grant
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

/// A field of `requires` that lists scopes of one class.
#[derive(Clone, Copy)]
struct Field {
    name: &'static str,
    /// Whether it is ours, and not AIP's: it may stand below `metadata.toolward.requires`, too.
    ours: bool,
}

/// What is known of a class.
struct Row {
    /// The word before the colon.
    name: &'static str,
    /// How tools.json spells it, where that differs. No class has such a name: what one document
    /// declares as nothing that is known would read as a network in the other.
    tools_json: Option<&'static str>,
    scope: ScopeForm,
    /// Where it is required; `None`: it can only be changed.
    required_in: Option<Field>,
    /// Whether a policy may give `class:*`.
    wildcard: bool,
    backing: Option<Backing>,
    /// Whether a call that may use it reaches the network.
    network: bool,
    /// Whether a tested example gets it, as a temporary one.
    in_examples: bool,
}

impl Row {
    fn new(name: &'static str, scope: ScopeForm) -> Row {
        Row {
            name,
            tools_json: None,
            scope,
            required_in: None,
            wildcard: true,
            backing: None,
            network: false,
            in_examples: false,
        }
    }

    fn required_in(mut self, name: &'static str, ours: bool) -> Row {
        self.required_in = Some(Field { name, ours });
        self
    }

    fn in_tools_json(mut self, name: &'static str) -> Row {
        self.tools_json = Some(name);
        self
    }

    fn backed_by(mut self, backing: Backing) -> Row {
        self.backing = Some(backing);
        self
    }

    fn one_by_one(mut self) -> Row {
        self.wildcard = false;
        self
    }

    fn on_the_network(mut self) -> Row {
        self.network = true;
        self
    }

    fn in_examples(mut self) -> Row {
        self.in_examples = true;
        self
    }
}

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

    /// The one table; `None` for what is not known.
    fn row(&self) -> Option<Row> {
        Some(match self {
            Class::Network => Row::new("network", ScopeForm::Host)
                .required_in("network", AIP)
                .in_tools_json("net")
                .on_the_network(),
            Class::Workspace => Row::new("workspace", ScopeForm::Path)
                .required_in("workspace", OURS)
                .in_tools_json("fs")
                .backed_by(Backing::Workspace)
                .in_examples(),
            Class::Database => Row::new("database", ScopeForm::Name)
                .required_in("database", OURS)
                .in_tools_json("db")
                .in_examples(),
            Class::Secret => Row::new("secret", ScopeForm::Slug)
                .required_in("secrets", AIP)
                .one_by_one()
                .backed_by(Backing::Secret),
            Class::External => Row::new("external", ScopeForm::Name)
                .backed_by(Backing::Service)
                .on_the_network(),
            Class::Tool => Row::new("tool", ScopeForm::ToolId)
                .required_in("tools", AIP)
                .one_by_one(),
            Class::User => Row::new("user", ScopeForm::OneOf(&["form", "sample", "roots"]))
                .required_in("user", OURS),
            Class::Other(_) => return None,
        })
    }

    /// The word before the colon.
    pub fn as_str(&self) -> &str {
        match self {
            Class::Other(name) => name,
            known => known.row().map_or("", |row| row.name),
        }
    }

    /// Whether a policy may give all of the class with one `*`.
    pub fn allows_wildcard(&self) -> bool {
        self.row().is_none_or(|row| row.wildcard)
    }

    /// Whether it is known, and can be required without changing it.
    pub fn can_be_required(&self) -> bool {
        self.row().is_some_and(|row| row.required_in.is_some())
    }

    /// The table of a policy that it needs besides a rule.
    pub fn backing(&self) -> Option<Backing> {
        self.row()?.backing
    }

    /// Whether a call that may use it reaches the network.
    pub fn is_on_the_network(&self) -> bool {
        self.row().is_some_and(|row| row.network)
    }

    /// Whether a tested example gets it, as a temporary one.
    pub fn is_in_examples(&self) -> bool {
        self.row().is_some_and(|row| row.in_examples)
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
        let fields = Class::KNOWN
            .iter()
            .filter_map(|class| Some((class.row()?.required_in?, class)));
        fields
            .filter(move |(field, _)| field.ours == ours)
            .map(|(field, class)| (field.name, class))
    }

    /// How tools.json spells it, where that differs.
    pub(crate) fn in_tools_json(&self) -> Option<&'static str> {
        self.row()?.tools_json
    }

    /// The class that only tools.json spells so.
    pub(crate) fn of_tools_json(name: &str) -> Option<&'static Class> {
        let mut known = Class::KNOWN.iter();
        known.find(|class| class.in_tools_json() == Some(name))
    }

    pub(super) fn scope(&self) -> ScopeForm {
        self.row().map_or(ScopeForm::Unknown, |row| row.scope)
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
