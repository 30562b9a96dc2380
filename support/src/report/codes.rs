//! The declaration of codes, and the properties of a code.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde::Serialize;

crate::words! {
    /// The severity of a finding.
    #[derive(PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    Severity {
        /// The file is refused.
        Error = "error",
        /// The file is accepted, but some of its text is read in the stricter of two ways, or may
        /// not mean what its author expects.
        Warning = "warning",
        /// Worth knowing; nothing to do.
        Note = "note",
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A row of a table of codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code as text. Stable: programs match on it.
    pub code: &'static str,
    /// The severity of findings with this code.
    pub severity: Severity,
    /// The exit codes of the command, in Markdown. Empty means 1 for an error, and none for a
    /// warning or a note.
    pub exit: &'static str,
    /// The problem, or the broken rule. Empty if another table has the meaning of this code.
    pub meaning: &'static str,
    /// What to do; empty if that depends on the case.
    pub advice: &'static str,
}

impl Code {
    /// Used by [`codes!`](crate::codes) to make a constant.
    #[doc(hidden)]
    #[must_use]
    pub const fn of(row: Self) -> Self {
        row
    }
}

/// A value that identifies a row of a table. [`codes!`](crate::codes) implements it.
pub trait Kind: Copy + Eq + Send + Sync + 'static {
    /// The row.
    fn row(self) -> &'static Code;
}

/// A value with a stable code. [`codes!`](crate::codes) implements it for errors.
pub trait Coded {
    /// The stable code.
    fn code(&self) -> &'static str;

    /// What to do about it, if that is known.
    fn hint(&self) -> Option<Cow<'_, str>>;
}

impl<K: Kind> Coded for K {
    fn code(&self) -> &'static str {
        self.row().code
    }

    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(self.row().advice)
            .filter(|advice| !advice.is_empty())
            .map(Cow::from)
    }
}

/// An error, boxed or not, as the source of another error. For [`codes!`](crate::codes).
#[doc(hidden)]
pub trait AsSource {
    fn as_source(&self) -> &(dyn Error + 'static);
}

impl<E: Error + 'static> AsSource for E {
    fn as_source(&self) -> &(dyn Error + 'static) {
        self
    }
}

impl AsSource for dyn Error + Send + Sync {
    fn as_source(&self) -> &(dyn Error + 'static) {
        self
    }
}

/// Declares stable codes, and the errors that have them, in three forms. In the first two, a row
/// has a code, its meaning, and optional advice. In the third, an error with fields, a row may also
/// have a message and a hint, and may take its code from a field. A severity may follow the code,
/// and then in brackets the command's exit codes. By default, the severity is `Error`, and the exit
/// code of an error is 1.
///
/// ```
/// use toolward_support::report::{Code, Severity, codes};
///
/// // An enum with `ALL`, `CODES`, `row`, `code` and `message`.
/// codes! {
///     /// Why a key is refused.
///     pub enum KeyProblem {
///         Weak = "key-weak", "the key is weak", "make a new one";
///         Expired = "key-expired", "the key has expired";
///     }
/// }
///
/// // Constants and a list of them, `CODES`.
/// codes! { pub const Code;
///     SYNTAX = "key-syntax", "not a key";
///     OLD_FORM = "key-old-form" Warning, "a key in the old form", "write it again";
/// }
///
/// // An error with fields, with `CODES`, `code` and `hint`. It is displayed as the message in
/// // parentheses, or otherwise as the meaning, or otherwise as the code. The hint follows `=>`. A
/// // row needs no meaning if another row or table has the meaning of its code.
/// codes! {
///     /// Why a file can't be used.
///     #[derive(Debug)]
///     pub enum Unusable: Error {
///         Missing { path: String } = "file-missing" ["2"], "a file is missing",
///             ("{path} is missing") => format!("create {path}");
///         // A field `source` is the error's source.
///         Unread(source: std::io::Error) = "file-unread", ("the file can't be read: {source}");
///         // `-> field`: this field has the code and the hint. `-> (expression)`: the expression is the code.
///         Key { name: String, problem: KeyProblem } -> problem, ("{name}: {}", problem.message());
///     }
/// }
///
/// // A single field `inner` is the error of another layer; its source is this error's source.
/// // Without a message, `inner` is displayed. Without a code, `inner` has the code, and the hint
/// // unless one follows `=>`.
/// codes! {
///     /// Why nothing starts.
///     #[derive(Debug)]
///     enum NotStarted: Error {
///         Unusable(inner: Unusable);
///     }
/// }
///
/// let error = NotStarted::from(Unusable::Missing { path: "a".to_owned() });
/// assert_eq!((error.code(), error.hint().as_deref()), ("file-missing", Some("create a")));
/// assert_eq!(error.to_string(), "a is missing");
/// let weak = Unusable::Key { name: "k".to_owned(), problem: KeyProblem::Weak };
/// assert_eq!((weak.to_string().as_str(), weak.hint().as_deref()), ("k: the key is weak", Some("make a new one")));
/// assert_eq!((KeyProblem::ALL.len(), CODES[1], CODES[1].severity), (2, OLD_FORM, Severity::Warning));
/// assert_eq!((Unusable::CODES[0].exit, Unusable::CODES.len()), ("2", 2));
/// ```
#[macro_export]
macro_rules! codes {
    ($(#[$outer:meta])* $vis:vis enum $name:ident {
        $($(#[$inner:meta])* $variant:ident = $code:literal $($severity:ident)? $([$exit:literal])?,
            $meaning:literal $(, $advice:literal)?;)+
    }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$inner])* #[doc = concat!("`", $code, "`: ", $meaning)] $variant,)+
        }

        impl $name {
            /// All of them, in the order of the table.
            #[allow(dead_code, reason = "a table may be read by its rows alone")]
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The rows of the table.
            pub const CODES: &'static [$crate::report::Code] =
                &[$($crate::codes!(@row $code [$($severity)?] [$($exit)?] [$meaning] [$($advice)?])),+];

            /// The row of the table.
            pub const fn row(self) -> &'static $crate::report::Code {
                match self {
                    $(Self::$variant =>
                        &$crate::codes!(@row $code [$($severity)?] [$($exit)?] [$meaning] [$($advice)?]),)+
                }
            }

            /// The stable code.
            pub const fn code(self) -> &'static str {
                self.row().code
            }

            /// What is wrong, without a final stop.
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
        $($name:ident = $code:literal $($severity:ident)? $([$exit:literal])?,
            $meaning:literal $(, $advice:literal)?;)+
    ) => {
        $(#[doc = concat!("`", $code, "`: ", $meaning)]
        $vis const $name: $type =
            <$type>::of($crate::codes!(@row $code [$($severity)?] [$($exit)?] [$meaning] [$($advice)?]));)+

        /// All codes of the table, in its order.
        pub const CODES: &'static [$crate::report::Code] =
            &[$($crate::codes!(@row $code [$($severity)?] [$($exit)?] [$meaning] [$($advice)?])),+];
    };
    ($(#[$outer:meta])* $vis:vis enum $name:ident: Error {
        $($(#[$inner:meta])* $variant:ident
            $(($($(#[$part_meta:meta])* $part:ident: $part_type:ty),+ $(,)?))?
            $({ $($(#[$field_meta:meta])* $field:ident: $type:ty),+ $(,)? })?
            $(= $code:literal $($severity:ident)? $([$exit:literal])? $(, $meaning:literal)?)?
            $(-> $of:tt)?
            $(, ($($message:tt)+))?
            $(=> $hint:expr)?;)+
    }) => {
        $(#[$outer])*
        #[allow(missing_docs, reason = "the meaning is the doc of a row; fields have names")]
        #[non_exhaustive]
        $vis enum $name {
            $($(#[$inner])* $(#[doc = concat!("`", $code, "`" $(, ": ", $meaning)?)])? $variant
                $(($($(#[$part_meta])* $part_type),+))? $({ $($(#[$field_meta])* $field: $type),+ })?,)+
        }

        #[allow(unused_variables, unused_imports, reason = "a row uses the fields that it needs")]
        impl $name {
            /// The rows of the table.
            pub const CODES: &'static [$crate::report::Code] = &[$($(
                $crate::codes!(@row $code [$($severity)?] [$($exit)?] [$($meaning)?] []),
            )?)+];

            /// The stable code, as the book lists it.
            pub fn code(&self) -> &'static str {
                use $crate::report::Coded as _;
                match self {
                    $(Self::$variant $(($($part),+))? $({ $($field),+ })? =>
                        $crate::codes!(@code [$($code)?] [$($of)?] [$($($part)+)?]),)+
                }
            }

            /// What to do about it, if that is known.
            pub fn hint(&self) -> Option<::std::borrow::Cow<'_, str>> {
                use $crate::report::Coded as _;
                match self {
                    $(Self::$variant $(($($part),+))? $({ $($field),+ })? =>
                        $crate::codes!(@hint [$($code)?] [$($of)?] [$($($part)+)?] [$($hint)?]),)+
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

        #[allow(unused_variables, reason = "a text names the fields that it needs")]
        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                match self {
                    $(Self::$variant $(($($part),+))? $({ $($field),+ })? => $crate::codes!(
                        @show f [$($($message)+)?] [$($($meaning)?)?] [$($code)?] [$($($part)+)?] [$($($part)+)?]
                    ),)+
                }
            }
        }

        #[allow(unused_variables, unused_imports, reason = "few variants have a source")]
        impl ::std::error::Error for $name {
            fn source(&self) -> Option<&(dyn ::std::error::Error + 'static)> {
                use $crate::report::AsSource as _;
                match self {
                    $(Self::$variant $(($($part),+))? $({ $($field),+ })? => None
                        $($(.or($crate::codes!(@source $part $part)))+)?
                        $($(.or($crate::codes!(@source $field $field)))+)?,)+
                }
            }
        }

        $($($($crate::codes!(@from $part $name $variant $part_type);)+)?)+
    };
    (@row $code:literal [$($severity:ident)?] [$($exit:literal)?] [$($meaning:literal)?] [$($advice:literal)?]) => {
        $crate::report::Code {
            code: $code,
            severity: $crate::codes!(@severity $($severity)?),
            exit: concat!($($exit)?),
            meaning: concat!($($meaning)?),
            advice: concat!($($advice)?),
        }
    };
    (@severity) => { $crate::report::Severity::Error };
    (@severity $severity:ident) => { $crate::report::Severity::$severity };
    (@code [$code:literal] $of:tt $parts:tt) => { $code };
    (@code [] [$of:ident] $parts:tt) => { $of.code() };
    (@code [] [($of:expr)] $parts:tt) => { $of };
    (@code [] [] [$inner:ident]) => { $inner.code() };
    (@hint $code:tt $of:tt $parts:tt [$hint:expr]) => { Some(::std::borrow::Cow::from($hint)) };
    (@hint [] [$of:ident] $parts:tt []) => { $of.hint().map(::std::borrow::Cow::from) };
    (@hint [] [] [$inner:ident] []) => { $inner.hint().map(::std::borrow::Cow::from) };
    (@hint $code:tt $of:tt $parts:tt []) => { None };
    (@show $f:ident [$($message:tt)+] $($other:tt)+) => { write!($f, $($message)+) };
    (@show $f:ident [] $meaning:tt $code:tt [inner] [$inner:ident]) => { ::std::fmt::Display::fmt($inner, $f) };
    (@show $f:ident [] [$meaning:literal] $($other:tt)+) => { $f.write_str($meaning) };
    (@show $f:ident [] [] [$code:literal] $($other:tt)+) => { $f.write_str($code) };
    (@source source $source:ident) => { Some($source.as_source()) };
    (@source inner $inner:ident) => { ::std::error::Error::source($inner) };
    (@source $name:ident $field:ident) => { None };
    (@from inner $name:ident $variant:ident $type:ty) => {
        impl From<$type> for $name {
            fn from(inner: $type) -> Self {
                Self::$variant(inner)
            }
        }
    };
    (@from $other:ident $name:ident $variant:ident $type:ty) => {};
}
