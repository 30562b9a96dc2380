//! The only module that uses the YAML library: reads a strict subset of YAML 1.2 with positions.
//! Fields are defined elsewhere.
//!
//! Only values that JSON also has are accepted: no anchors, aliases, tags, merge keys, second
//! documents or duplicate keys. Keys are text or, if [`KeyForm`] allows them, integers. Plain
//! scalars follow the YAML 1.2 core schema, so `no`, `on` and `12:30` are text. The parser's events
//! are used instead of serde, since diagnostics need the position of each key.

use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span};
use serde_json::Number;

use super::{Content, Entry, Node};
use crate::codes;
use crate::diagnostic::{Code, FileReport, Position};
use crate::json::number_in_range;

const MAX_DEPTH: usize = 64;
/// How many values a document may have, without its keys. This limits the work for 64 KiB of text.
const MAX_NODES: usize = 2048;
/// How much of a comment a message shows.
const SHOWN_CHARS: usize = 40;

/// The allowed form of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// Text.
    Text,
    /// Text, or an integer, which is read as its text in the document.
    Integers,
}

/// Reads one document whose first line is line `first_line` of the file.
pub(crate) fn parse(
    text: &str,
    first_line: u32,
    keys: KeyForm,
    report: &FileReport<'_>,
) -> Option<Node> {
    let mut options = Options::default();
    options.disallow_directives = true;
    options.emit_unresolved_aliases = true;
    options.flow_nesting_limit = MAX_DEPTH + 1;
    options.block_nesting_limit = MAX_DEPTH + 1;
    let mut builder = Builder {
        lines: text.lines().collect(),
        report,
        first_line,
        keys,
        open: Vec::new(),
        root: None,
        nodes: 0,
    };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, span)?,
            Err(error) => return builder.syntax(&error),
        }
    }
    let at = Position {
        line: first_line,
        column: 1,
    };
    let content = Content::Null;
    Some(builder.root.unwrap_or(Node { content, at }))
}

enum Open {
    List(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        key: Option<(String, Position)>,
    },
}

struct Builder<'t> {
    lines: Vec<&'t str>,
    report: &'t FileReport<'t>,
    first_line: u32,
    keys: KeyForm,
    open: Vec<(Open, Position)>,
    root: Option<Node>,
    nodes: usize,
}

impl Builder<'_> {
    fn place(&self, line: usize, column: usize) -> Position {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let line = narrow(line.saturating_sub(1)).saturating_add(self.first_line);
        Position {
            line,
            column: narrow(column).saturating_add(1),
        }
    }

    fn refuse<T>(&self, code: &Code, at: Position, message: impl Into<String>) -> Option<T> {
        self.report.add(code, at, message);
        None
    }

    fn syntax<T>(&self, error: &granit_parser::ScanError) -> Option<T> {
        let code = match error.kind() {
            ErrorKind::RecursionLimitExceeded => &codes::YAML_TOO_DEEP,
            ErrorKind::UnknownAnchor => &codes::YAML_ALIAS,
            _ => &codes::YAML_SYNTAX,
        };
        let at = self.place(error.marker().line(), error.marker().col());
        let message = format!("expected YAML, found an error: {}", error.info());
        let hint = advice(error.kind()).map(str::to_owned);
        self.report.add_with_hint(code, at, message, hint);
        None
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let at = self.place(span.start.line(), span.start.col());
        match event {
            Event::DocumentStart(..) if self.root.is_some() => {
                let message = "expected one YAML document, found a second one";
                self.refuse(&codes::YAML_MULTIPLE_DOCUMENTS, at, message)
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) | Event::Anchor(..) => {
                let message = "expected a value written out, found an alias (`*name`)";
                self.refuse(&codes::YAML_ALIAS, at, message)
            }
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                let message = "expected a plain value, found an anchor (`&name`)";
                self.refuse(&codes::YAML_ALIAS, at, message)
            }
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, _, Some(tag))
            | Event::MappingStart(_, _, Some(tag)) => {
                let start = span.tag_start();
                let at = start.map_or(at, |start| self.place(start.line(), start.col()));
                let message = format!("expected a value without a tag, found `{}`", tag.original());
                self.refuse(&codes::YAML_TAG, at, message)
            }
            Event::Scalar(text, style, ..) => {
                if style == ScalarStyle::Plain {
                    self.check_whole(&text, &span, at)?;
                }
                self.scalar(&text, style, at)
            }
            Event::SequenceStart(..) => self.start(Open::List(Vec::new()), at),
            Event::MappingStart(..) => {
                let (entries, key) = (Vec::new(), None);
                self.start(Open::Mapping { entries, key }, at)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some((Open::List(items), at)) => self.add(Content::List(items), at),
                Some((Open::Mapping { entries, .. }, at)) => {
                    self.add(Content::Mapping(entries), at)
                }
                None => Some(()),
            },
            _ => Some(()),
        }
    }

    /// Checks that no comment cuts off a text. YAML allows comments after values, so a text of one
    /// word may have one. A text of several words gives a warning. A model decides by the
    /// description, so a cut description is an error.
    fn check_whole(&self, text: &str, span: &Span, at: Position) -> Option<()> {
        let line = self.lines.get(span.end.line().saturating_sub(1));
        let rest: String = line.map_or_else(String::new, |line| {
            line.chars().skip(span.end.col()).collect()
        });
        if !rest.starts_with([' ', '\t']) || !rest.trim_start().starts_with('#') {
            return Some(());
        }
        let describes = matches!(
            self.open.last(),
            Some((Open::Mapping { key: Some((key, _)), .. }, _)) if key == "description"
        );
        let is_text = matches!(plain(text), Some(Content::Text(_)));
        if !is_text || !(describes || text.contains(char::is_whitespace)) {
            return Some(());
        }
        let shown: String = rest.trim_start().chars().take(SHOWN_CHARS).collect();
        let message =
            format!("expected the whole text, found that ` #` ends it: {shown:?} is a comment");
        if describes {
            let hint = "put the text between quotation marks, or the comment on a line by itself";
            let code = &codes::DESCRIPTION_CUT;
            self.report
                .add_with_hint(code, at, message, hint.to_owned());
            return None;
        }
        let hint = format!("put the text between quotation marks if {shown:?} belongs to it");
        self.report
            .add_with_hint(&codes::TEXT_CUT, at, message, hint);
        Some(())
    }

    fn start(&mut self, open: Open, at: Position) -> Option<()> {
        if matches!(self.open.last(), Some((Open::Mapping { key: None, .. }, _))) {
            return self.refuse_key(at, "a mapping or a list");
        }
        if self.open.len() >= MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} nested mappings and lists, found more");
            return self.refuse(&codes::YAML_TOO_DEEP, at, message);
        }
        self.open.push((open, at));
        Some(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: Position) -> Option<()> {
        let content = match style {
            ScalarStyle::Plain => plain(text).or_else(|| {
                let message = format!(
                    "expected a finite number, integers from -(2^53-1) to 2^53-1, found {text}"
                );
                self.refuse(&codes::NUMBER_RANGE, at, message)
            })?,
            _ => Content::Text(text.to_owned()),
        };
        let Some((Open::Mapping { entries, key: None }, _)) = self.open.last() else {
            return self.add(content, at);
        };
        let name = match content {
            Content::Text(name) => name,
            Content::Number(number) if self.keys == KeyForm::Integers && !number.is_f64() => {
                text.to_owned()
            }
            _ => return self.refuse_key(at, text),
        };
        if name == "<<" && matches!(style, ScalarStyle::Plain) {
            let message = "expected the keys written out, found a merge key (`<<`)";
            return self.refuse(&codes::YAML_MERGE_KEY, at, message);
        }
        if let Some(first) = entries.iter().find(|entry| entry.key == name) {
            let message = format!(
                "expected `{name}` once, found it again (first on line {})",
                first.key_at.line
            );
            return self.refuse(&codes::YAML_DUPLICATE_KEY, at, message);
        }
        if let Some((Open::Mapping { key, .. }, _)) = self.open.last_mut() {
            *key = Some((name, at));
        }
        Some(())
    }

    fn add(&mut self, content: Content, at: Position) -> Option<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message =
                format!("expected at most {MAX_NODES} values in the front matter, found more");
            return self.refuse(&codes::YAML_TOO_MANY_NODES, at, message);
        }
        let value = Node { content, at };
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some((Open::List(items), _)) => items.push(value),
            Some((Open::Mapping { entries, key }, _)) => {
                if let Some((key, key_at)) = key.take() {
                    entries.push(Entry { key, key_at, value });
                }
            }
        }
        Some(())
    }

    fn refuse_key(&self, at: Position, found: &str) -> Option<()> {
        let found = if found.is_empty() { "nothing" } else { found };
        let message = format!("expected a key that is text, found {found}");
        self.refuse(&codes::YAML_KEY_NOT_STRING, at, message)
    }
}

/// Reads a plain scalar by the YAML 1.2 core schema; `None` for a number that is not finite or out
/// of range.
fn plain(text: &str) -> Option<Content> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(Content::Null),
        "true" | "True" | "TRUE" => return Some(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Some(Content::Bool(false)),
        ".nan" | ".NaN" | ".NAN" => return None,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return None;
    }
    let radix = match text.get(..2) {
        Some("0x") => Some(16),
        Some("0o") => Some(8),
        _ => None,
    };
    let number = if let (Some(radix), Some(digits)) = (radix, text.get(2..))
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_digit(radix))
    {
        u64::from_str_radix(digits, radix).map(Number::from).ok()
    } else if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        text.parse::<i64>().map(Number::from).ok()
    } else if is_float(unsigned) {
        text.parse::<f64>().ok().and_then(Number::from_f64)
    } else {
        return Some(Content::Text(text.to_owned()));
    };
    number.filter(number_in_range).map(Content::Number)
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(unsigned: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)),
        ),
        None => (unsigned, None),
    };
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// The hint for a parser's error: the correct form for frequent mistakes in front matter.
fn advice(kind: &ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => {
            "a text with `: ` in it stands between quotation marks: `description: \"Note: read this\"`"
        }
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => "indent with spaces: YAML takes no tabs there",
        ErrorKind::UnexpectedCharacter { .. } => {
            "put a text that starts with a special character, such as @, `, % or &, between quotation marks"
        }
        ErrorKind::UnclosedQuotedScalar
        | ErrorKind::InvalidQuotedScalarIndent
        | ErrorKind::DocumentIndicatorInQuotedScalar => {
            "close the quotation mark that is open here"
        }
        ErrorKind::InvalidTrailingSingleQuotedScalar => {
            "write an apostrophe in a text between single quotation marks twice: \'it\'\'s\'"
        }
        ErrorKind::InvalidTrailingDoubleQuotedScalar => {
            "write a quotation mark in a text between double quotation marks as \\\""
        }
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => {
            "write a backslash between double quotation marks twice, or use single quotation marks"
        }
        ErrorKind::CommentInterceptedScalar => {
            "a ` #` starts a comment: put a text with it between quotation marks"
        }
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => {
            "write `key: value`, with a colon and a space after the key"
        }
        ErrorKind::InvalidIndentation
        | ErrorKind::InvalidBlockScalarIndent
        | ErrorKind::ExpectedBlockMappingKey
        | ErrorKind::ExpectedBlockSequenceEntry => {
            "indent the keys of one mapping, and the items of one list, by the same number of spaces; put a text that \
             starts with a bracket between quotation marks"
        }
        ErrorKind::InvalidColonPlacement
        | ErrorKind::UnclosedFlowCollection { .. }
        | ErrorKind::ExpectedFlowMappingSeparator
        | ErrorKind::ExpectedFlowSequenceSeparator
        | ErrorKind::MismatchedFlowCollectionEnd { .. }
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence => {
            "close the bracket, and put a text that starts with one between quotation marks"
        }
        ErrorKind::BlockSequenceEntryNotAllowed => "start a list on the line after its key",
        _ => return None,
    })
}
