//! The differences between this host and the JSON Schemas that the specifications publish, with
//! reasons. The tests next to this file check every row against both sides. The book's page is
//! generated from this file by `xtask/generate`, which includes it unchanged.

// Paths, since `xtask/generate` includes this file from another folder.
#[path = "differences/action.rs"]
mod action;
#[path = "differences/contract.rs"]
mod contract;
#[path = "differences/driver.rs"]
mod driver;
#[path = "differences/http.rs"]
mod http;

/// A specification with a published schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Specification {
    /// TOOL.md.
    Contract,
    /// DRIVER.md.
    Driver,
    /// DRIVER.md of `kind: http`; the rows of [`Specification::Driver`] apply to it, too.
    Http,
    /// ACTION.md.
    Action,
}

/// Which side refuses a document that the other side accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// This host refuses it.
    Stricter,
    /// The published schema refuses it.
    Wider,
}

/// One difference.
pub(crate) struct Difference {
    pub(crate) specification: Specification,
    pub(crate) direction: Direction,
    /// The affected fields: `[]` is an item of a list, `*` any name, `**` everything below. Empty
    /// means the whole document.
    pub(crate) fields: &'static [&'static str],
    /// Stricter: codes of this host's errors. Wider: the code of its warning, if any.
    pub(crate) codes: &'static [&'static str],
    /// Wider: the keywords of the published schema that refuse it.
    pub(crate) keywords: &'static [&'static str],
    /// This host's rule.
    pub(crate) rule: &'static str,
    /// The reason for the difference.
    pub(crate) reason: &'static str,
    /// The changes that make the smallest valid document show the difference: JSON pointers with
    /// JSON, or `@text N`, `@list N` and `@deep N` for a text, list or nesting of that size.
    pub(crate) case: &'static [(&'static str, &'static str)],
}

const fn stricter(
    specification: Specification,
    fields: &'static [&'static str],
    codes: &'static [&'static str],
    rule: &'static str,
    reason: &'static str,
    case: &'static [(&'static str, &'static str)],
) -> Difference {
    Difference {
        specification,
        direction: Direction::Stricter,
        fields,
        codes,
        keywords: &[],
        rule,
        reason,
        case,
    }
}

const fn wider(
    specification: Specification,
    fields: &'static [&'static str],
    (keywords, codes): (&'static [&'static str], &'static [&'static str]),
    rule: &'static str,
    reason: &'static str,
    case: &'static [(&'static str, &'static str)],
) -> Difference {
    Difference {
        specification,
        direction: Direction::Wider,
        fields,
        codes,
        keywords,
        rule,
        reason,
        case,
    }
}

const SHOWN: &str =
    "The person who consents sees these texts, which must not look like something else.";
const GRANTED: &str = "Scopes decide what a grant covers.";
const BOUNDED: &str = "The cost of reading a document is limited before the document is trusted.";
const EXACT: &str = "Other readers would round larger integers.";
const SEMVER: &str =
    "Ranges and rollback protection compare versions, so all readers must order versions alike.";
const ONE_SPELLING: &str =
    "Documents that are compared as text differ if one value has two spellings.";
const TRIMMED: &str = "White space alone means nothing to a reader.";
const AS_TEXT: &str = "Tags are for readers, and decide nothing.";
/// The fields of `requires` that are not in the specifications.
const OUR_REQUIREMENTS: &[&str] = &["requires.workspace", "requires.database", "requires.user"];
const OWN_CLASSES: &str = "They declare Toolward's own classes of capabilities.";
const UNKNOWN_CLASS: &str = "An unknown class grants nothing, and counts as a change.";
const POLICY_NAME: &str = "Operators choose these names, and `check` does not know them.";
const BUILD: &str = "Semantic versions may have both.";

/// Every difference.
pub(crate) fn all() -> impl Iterator<Item = &'static Difference> {
    [contract::ROWS, driver::ROWS, http::ROWS, action::ROWS]
        .into_iter()
        .flatten()
}
