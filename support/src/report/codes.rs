//! Codes: how they are declared, and what is known of each.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file is accepted; the text is read in the stricter way, or may not mean what its author expects.
    Warning,
    /// Worth knowing; nothing to do.
    Note,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        })
    }
}

/// A row of a table of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code as text. Stable: programs match on it.
    pub code: &'static str,
    /// The severity of what has this code.
    pub severity: Severity,
    /// What is wrong, or which rule is broken.
    pub meaning: &'static str,
    /// What to do; empty where that depends on the case.
    pub advice: &'static str,
}

impl Code {
    /// What [`codes!`](crate::codes) makes a constant of.
    #[doc(hidden)]
    #[must_use]
    pub const fn of(row: Self) -> Self {
        row
    }
}

/// A value that stands for a row of a table. [`codes!`](crate::codes) implements it.
pub trait Kind: Copy + Eq + Send + Sync + 'static {
    /// The row.
    fn row(self) -> &'static Code;
}

/// A value with a stable code. [`codes!`](crate::codes) implements it for errors.
pub trait Coded {
    /// The stable code.
    fn code(&self) -> &'static str;

    /// What to do about it, where that is known.
    fn hint(&self) -> Option<Cow<'_, str>>;
}

/// Declares stable codes. One of three forms, with the same kind of rows:
///
/// ```
/// use toolward_support::report::{Code, codes};
///
/// // An enum with `ALL`, `row`, `code` and `message`: code, meaning, and advice that may be left out.
/// codes! {
///     /// Why a key is refused.
///     pub enum KeyProblem {
///         Weak = "key-weak", "the key is weak", "make a new one";
///         Expired = "key-expired", "the key has expired";
///     }
/// }
///
/// // Constants and a list of them, `CODES`. A severity may stand behind the code.
/// codes! { pub const Code;
///     SYNTAX = "key-syntax", "not a key";
///     OLD_FORM = "key-old-form" Warning, "a key in the old form", "write it again";
/// }
///
/// // `code` and `hint` of an error with fields: a code and a hint for each of its patterns. A name instead of
/// // the code stands for a field that has a code and a hint itself; an expression in parentheses gives a code.
/// enum Missing {
///     File { path: String },
///     Name,
/// }
///
/// codes! {
///     for Missing {
///         Self::File { path } = "file-missing", format!("create {path}");
///         Self::Name = "name-missing";
///     }
/// }
///
/// enum Error {
///     Missing(Missing),
/// }
///
/// codes! { for Error { Self::Missing(missing) = missing; } }
///
/// let error = Error::Missing(Missing::File { path: "a".to_owned() });
/// assert_eq!((error.code(), error.hint().as_deref()), ("file-missing", Some("create a")));
/// assert_eq!((KeyProblem::ALL.len(), CODES[1]), (2, OLD_FORM));
/// ```
#[macro_export]
macro_rules! codes {
    ($(#[$outer:meta])* $vis:vis enum $name:ident {
        $($(#[$inner:meta])* $variant:ident = $code:literal, $meaning:literal $(, $advice:literal)?;)+
    }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$inner])* #[doc = concat!("`", $code, "`: ", $meaning)] $variant,)+
        }

        impl $name {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The row of the table.
            #[must_use]
            pub const fn row(self) -> &'static $crate::report::Code {
                match self {
                    $(Self::$variant => &$crate::codes!(@row $code, $meaning $(, $advice)?),)+
                }
            }

            /// The stable code.
            #[must_use]
            pub const fn code(self) -> &'static str {
                self.row().code
            }

            /// What is wrong, without a final stop.
            #[must_use]
            pub const fn message(self) -> &'static str {
                self.row().meaning
            }
        }

        impl $crate::report::Kind for $name {
            fn row(self) -> &'static $crate::report::Code {
                Self::row(self)
            }
        }
    };
    ($vis:vis const $type:ty;
        $($name:ident = $code:literal $($severity:ident)?, $meaning:literal $(, $advice:literal)?;)+
    ) => {
        $(#[doc = concat!("`", $code, "`: ", $meaning)]
        $vis const $name: $type =
            <$type>::of($crate::codes!(@row $code $($severity)?, $meaning $(, $advice)?));)+

        /// All codes of the table, in its order.
        pub const CODES: &'static [$crate::report::Code] =
            &[$($crate::codes!(@row $code $($severity)?, $meaning $(, $advice)?)),+];
    };
    (for $name:ident {
        $($pattern:pat = $($code:literal)? $($inner:ident)? $(($found:expr))? $(, $hint:expr)?;)+
    }) => {
        #[allow(unused_variables, reason = "code and hint need other fields")]
        impl $name {
            /// The stable code, as the book lists it.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    $($pattern => $crate::codes!(@code $($code)? $($inner)? $(($found))?),)+
                }
            }

            /// What to do about it, where that is known.
            #[must_use]
            pub fn hint(&self) -> Option<::std::borrow::Cow<'_, str>> {
                match self {
                    $($pattern => $crate::codes!(@hint $($code)? $($inner)? $(($found))? $(, $hint)?),)+
                }
            }
        }

        impl $crate::report::Coded for $name {
            fn code(&self) -> &'static str {
                Self::code(self)
            }

            fn hint(&self) -> Option<::std::borrow::Cow<'_, str>> {
                Self::hint(self)
            }
        }
    };
    (@row $code:literal, $($text:literal),+) => {
        $crate::codes!(@row $code Error, $($text),+)
    };
    (@row $code:literal $severity:ident, $meaning:literal $(, $advice:literal)?) => {
        $crate::report::Code {
            code: $code,
            severity: $crate::report::Severity::$severity,
            meaning: $meaning,
            advice: concat!($($advice)?),
        }
    };
    (@code $code:literal) => { $code };
    (@code $inner:ident) => { $inner.code() };
    (@code ($found:expr)) => { $found };
    (@hint $inner:ident) => { $inner.hint().map(::std::borrow::Cow::from) };
    (@hint $code:tt) => { None };
    (@hint $code:tt, $hint:expr) => { Some(::std::borrow::Cow::from($hint)) };
}
