//! The capability classes. All that depends on a class alone is here; what a grant gives a sandbox besides its scopes
//! is the policy crate's (`decide`, `effects`).

use std::fmt;

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
    /// One of these words, each with what it gives.
    OneOf(&'static [(&'static str, &'static str)]),
    /// Anything without spaces.
    Unknown,
}

/// A row of the table of classes.
struct ClassRow {
    /// The word before the colon.
    name: &'static str,
    scope: ScopeForm,
    /// Its field of `requires`, if it can be required without changing it, and whose field that is.
    field: Option<(&'static str, FieldOf)>,
    backing: Option<Backing>,
    /// How tools.json spells it, where that differs.
    in_tools_json: Option<&'static str>,
}

/// Who defines a field of `requires`. Our own may stand below `metadata.toolward.requires`, too.
#[derive(PartialEq)]
enum FieldOf {
    Aip,
    Toolward,
}

/// Declares the classes. A row has the word, the form of the scopes, the field of `requires`, the table of a policy that
/// it needs besides a rule, and the spelling of tools.json.
macro_rules! classes {
    ($($(#[$doc:meta])+ $class:ident = $name:literal, $scope:expr, $field:expr, $backing:expr, $in_tools_json:expr;)+) => {
        /// The kind of thing that a capability is about. A new class is a new version of the
        /// formats, so the enum is exhaustive.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Class {
            $($(#[$doc])+ $class,)+
            /// A class that this host does not know, or a known one with a scope that it does not have (`workspace:metadata`). It
            /// counts as a mutation and grants nothing.
            Other(String),
        }

        impl Class {
            /// The classes that this host knows, in order.
            pub const KNOWN: &[Class] = &[$(Class::$class),+];

            fn row(&self) -> Option<ClassRow> {
                let (name, scope, field, backing, in_tools_json) = match self {
                    $(Class::$class => ($name, $scope, $field, $backing, $in_tools_json),)+
                    Class::Other(_) => return None,
                };
                Some(ClassRow { name, scope, field, backing, in_tools_json })
            }
        }
    };
}

classes! {
    /// Outgoing HTTP: `network:host[:port]`, `network:*.host`, `network:*`
    Network = "network", ScopeForm::Host, Some(("network", FieldOf::Aip)), None, Some("net");
    /// Files at or below a path: `workspace:/path`
    Workspace = "workspace", ScopeForm::Path, Some(("workspace", FieldOf::Toolward)), Some(Backing::Workspace), Some("fs");
    /// A key-value bucket: `database:name`
    Database = "database", ScopeForm::Name, Some(("database", FieldOf::Toolward)), None, Some("db");
    /// Using a secret, or storing it if `mutates` has it: `secret:slug`
    Secret = "secret", ScopeForm::Slug, Some(("secrets", FieldOf::Aip)), Some(Backing::Secret), None;
    /// Changes at a service, whose hosts the policy names: `external:service`
    External = "external", ScopeForm::Name, None, Some(Backing::Service), None;
    /// Calls of another tool: `tool:id`
    Tool = "tool", ScopeForm::ToolId, Some(("tools", FieldOf::Aip)), None, None;
    /// Questions to the person or client behind the caller: `user:form`, `user:sample`,
    /// `user:roots`
    User = "user", ScopeForm::OneOf(QUESTIONS), Some(("user", FieldOf::Toolward)), None, None;
}

/// An import for a capability: the package, or one interface of it; the classes of which one must be declared for it;
/// and, if a component that imports it without a declaration is refused, what the contract lacks and how it declares
/// that. Python and Rust's std always import the others, which are linked without access.
pub type Import = (
    &'static str,
    &'static [Class],
    Option<(&'static str, &'static str)>,
);

const QUESTIONS: &[(&str, &str)] = &[
    ("form", "forms for the person behind the caller"),
    ("sample", "samples of the caller's model"),
    ("roots", "the caller's workspace roots"),
];

impl Class {
    /// The imports for capabilities.
    pub const IMPORTS: &[Import] = &[
        (
            "wasi:http",
            &[Class::Network, Class::External],
            Some((
                "network",
                "add `requires.network` to the contract, or build the driver without HTTP",
            )),
        ),
        (
            "wasi:keyvalue",
            &[Class::Database],
            Some((
                "a database",
                "add `mutates: [\"database:NAME\"]` to the contract, or build the driver without it",
            )),
        ),
        ("wasi:filesystem", &[Class::Workspace], None),
        // No declaration opens raw sockets.
        ("wasi:sockets", &[], None),
        ("toolward:driver/secrets", &[Class::Secret], None),
        ("toolward:driver/tools", &[Class::Tool], None),
    ];

    /// The word before the colon.
    pub fn as_str(&self) -> &str {
        match self {
            Class::Other(name) => name,
            known => known.row().map_or("", |row| row.name),
        }
    }

    /// Whether a policy may give all of the class with one `*`.
    pub fn allows_wildcard(&self) -> bool {
        !matches!(self, Class::Secret | Class::Tool)
    }

    /// Whether it is known, and can be required without changing it.
    pub fn can_be_required(&self) -> bool {
        self.row().is_some_and(|row| row.field.is_some())
    }

    /// The table of a policy that it needs besides a rule.
    pub fn backing(&self) -> Option<Backing> {
        self.row().and_then(|row| row.backing)
    }

    /// Whether a call that may use it reaches the network.
    pub fn is_on_the_network(&self) -> bool {
        matches!(self, Class::Network | Class::External)
    }

    /// Whether a tested example gets it, as a temporary one.
    pub fn is_in_examples(&self) -> bool {
        matches!(self, Class::Workspace | Class::Database)
    }

    /// What the scope of a grant gives, in words for people, and whether it changes something. For classes whose
    /// grants have no more than a scope.
    pub fn gives(&self, scope: &str) -> (String, bool) {
        match (self, self.word(scope)) {
            (_, Some((_, words))) => (words.to_owned(), false),
            (Class::Tool, None) => (format!("calls of {scope}"), false),
            (_, None) => (format!("{self} {scope}"), true),
        }
    }

    /// The place of a scope in the list of words that the class has as scopes.
    pub fn place(&self, scope: &str) -> usize {
        self.word(scope).map_or(0, |(place, _)| place)
    }

    fn word(&self, scope: &str) -> Option<(usize, &'static str)> {
        let ScopeForm::OneOf(words) = self.scope() else {
            return None;
        };
        let mut words = words.iter().enumerate();
        words.find_map(|(place, (word, gives))| (*word == scope).then_some((place, *gives)))
    }

    /// The fields of `requires` and their classes: first the fields of AIP.
    pub(crate) fn required() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(FieldOf::Aip).chain(Class::required_ours())
    }

    /// The fields that `metadata.toolward.requires` may have, too.
    pub(crate) fn required_ours() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(FieldOf::Toolward)
    }

    fn fields(of: FieldOf) -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::KNOWN.iter().filter_map(move |class| {
            let (name, owner) = class.row()?.field?;
            (owner == of).then_some((name, class))
        })
    }

    /// How tools.json spells it, where that differs.
    pub(crate) fn in_tools_json(&self) -> Option<&'static str> {
        self.row()?.in_tools_json
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
        let known = Class::KNOWN.iter().find(|class| class.as_str() == text);
        known
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

    #[test]
    fn a_scope_gives_what_its_class_has_for_it_in_the_order_of_its_words() {
        let (words, writes) = Class::User.gives("sample");
        assert_eq!((&*words, writes), ("samples of the caller's model", false));
        let (words, writes) = Class::Tool.gives("text.stats");
        assert_eq!((&*words, writes), ("calls of text.stats", false));
        let places = ["form", "sample", "roots"].map(|word| Class::User.place(word));
        assert_eq!(places, [0, 1, 2]);
        assert_eq!(Class::Tool.place("sample"), 0);
    }
}
