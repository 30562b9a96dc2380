//! The capability classes, and everything that depends on a class alone. A grant may give a sandbox
//! more than scopes, such as a directory; the policy crate decides that (`decide`).

use std::fmt;

/// A table that a policy must have for a capability, in addition to the rule that grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backing {
    /// `[[workspace]]`: the directory.
    Workspace,
    /// `[[secret]]`: the source and the destination of the value. Storing a secret needs no table.
    Secret,
    /// `[[service]]`: the hosts.
    Service,
}

/// The form of the scopes of a class.
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
    /// One of these words, each with a description of what it gives.
    OneOf(&'static [(&'static str, &'static str)]),
    /// Any text without white space and control characters.
    Unknown,
}

/// A row of the table of classes.
struct ClassRow {
    /// The word before the colon.
    name: &'static str,
    scope: ScopeForm,
    /// The field of `requires` and who defines it; `None` if the class can't be required.
    field: Option<(&'static str, FieldOf)>,
    backing: Option<Backing>,
    /// The spelling in tools.json, if that differs.
    in_tools_json: Option<&'static str>,
}

/// Who defines a field of `requires`. Toolward's fields can also be in
/// `metadata.toolward.requires`.
#[derive(PartialEq)]
enum FieldOf {
    Aip,
    Toolward,
}

/// Declares the classes. A row has the word, the form of the scopes, the field of `requires`, the
/// table that a policy needs in addition to a rule, and the spelling in tools.json.
macro_rules! classes {
    ($($(#[$doc:meta])+ $class:ident = $name:literal, $scope:expr, $field:expr, $backing:expr, $in_tools_json:expr;)+) => {
        /// The subject of a capability. A new class needs a new version of the formats, so the enum
        /// is exhaustive.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Class {
            $($(#[$doc])+ $class,)+
            /// A class that this host does not know, or a known class with a word that is not one
            /// of its scopes (`workspace:metadata`). It counts as a mutation and grants nothing.
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

/// An import of a component, with the capability that it needs.
#[derive(Debug)]
pub struct Import {
    /// The package or interface, such as `wasi:http`.
    pub name: &'static str,
    /// The classes, one of which must be declared.
    pub classes: &'static [Class],
    /// Set if a component with the undeclared import is refused. Other undeclared imports are
    /// linked without access, since toolchains import some of them in any case.
    pub refusal: Option<ImportRefusal>,
}

/// How a component with an undeclared import is refused.
#[derive(Debug)]
pub struct ImportRefusal {
    /// What the contract does not declare, such as `a database`.
    pub lacks: &'static str,
    /// The next step.
    pub hint: &'static str,
}

const fn linked(name: &'static str, classes: &'static [Class]) -> Import {
    Import {
        name,
        classes,
        refusal: None,
    }
}

const QUESTIONS: &[(&str, &str)] = &[
    ("form", "forms for the person behind the caller"),
    ("sample", "samples of the caller's model"),
    ("roots", "the caller's workspace roots"),
];

impl Class {
    /// The imports that need a capability.
    pub const IMPORTS: &[Import] = &[
        Import {
            name: "wasi:http",
            classes: &[Class::Network, Class::External],
            refusal: Some(ImportRefusal {
                lacks: "network",
                hint: "add `requires.network` to the contract, or build the driver without HTTP",
            }),
        },
        Import {
            name: "wasi:keyvalue",
            classes: &[Class::Database],
            refusal: Some(ImportRefusal {
                lacks: "a database",
                hint: "add `mutates: [\"database:NAME\"]` to the contract, or build the driver without it",
            }),
        },
        linked("wasi:filesystem", &[Class::Workspace]),
        // No declaration opens raw sockets.
        linked("wasi:sockets", &[]),
        linked("toolward:driver/secrets", &[Class::Secret]),
        linked("toolward:driver/tools", &[Class::Tool]),
    ];

    /// The word before the colon.
    pub fn as_str(&self) -> &str {
        match self {
            Class::Other(name) => name,
            known => known.row().map_or("", |row| row.name),
        }
    }

    /// Whether a policy may grant the whole class with one `*`.
    pub fn allows_wildcard(&self) -> bool {
        !matches!(self, Class::Secret | Class::Tool)
    }

    /// Whether it is a known class that a contract can have in `requires`.
    pub fn can_be_required(&self) -> bool {
        self.row().is_some_and(|row| row.field.is_some())
    }

    /// The table that a policy must have for it, in addition to a rule.
    pub fn backing(&self) -> Option<Backing> {
        self.row().and_then(|row| row.backing)
    }

    /// Whether a call that may use it can reach the network.
    pub fn is_on_the_network(&self) -> bool {
        matches!(self, Class::Network | Class::External)
    }

    /// Whether a test of an example gets it, with temporary contents.
    pub fn is_in_examples(&self) -> bool {
        matches!(self, Class::Workspace | Class::Database)
    }

    /// Describes for people what a scope gives, and returns whether the scope allows a change. Only
    /// for classes whose grants consist of scopes alone.
    pub fn gives(&self, scope: &str) -> (String, bool) {
        match (self, self.word(scope)) {
            (_, Some((_, words))) => (words.to_owned(), false),
            (Class::Tool, None) => (format!("calls of {scope}"), false),
            (_, None) => (format!("{self} {scope}"), true),
        }
    }

    /// The position of a scope in the class's list of words; 0 if the scope is not in such a list.
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

    /// The fields of `requires` with their classes, the fields of AIP first.
    pub(crate) fn required() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(FieldOf::Aip).chain(Class::required_ours())
    }

    /// The fields of Toolward, which can also be in `metadata.toolward.requires`.
    pub(crate) fn required_ours() -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::fields(FieldOf::Toolward)
    }

    fn fields(of: FieldOf) -> impl Iterator<Item = (&'static str, &'static Class)> {
        Class::KNOWN.iter().filter_map(move |class| {
            let (name, owner) = class.row()?.field?;
            (owner == of).then_some((name, class))
        })
    }

    /// The spelling in tools.json, if that differs.
    pub(crate) fn in_tools_json(&self) -> Option<&'static str> {
        self.row()?.in_tools_json
    }

    /// The class that tools.json spells in this way, if other documents spell it differently.
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
