//! The one place that knows the YAML library: a strict subset of YAML 1.2 with places. Knows no field.
//!
//! Only what JSON can say is accepted: no anchors, aliases, tags, merge keys, second documents,
//! duplicate keys or keys that are not text. Plain scalars follow the YAML 1.2 core schema, so that
//! `no`, `on` and `12:30` are text. Events instead of serde, because each key's place is wanted.

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};
use serde_json::Number;

use super::{Content, Entry, Node, yaml_advice};
use crate::codes;
use crate::diagnostic::Code;
use crate::diagnostic::Position;
use crate::json::number_in_range;

const MAX_DEPTH: usize = 64;
/// Values, keys not counted. Bounds the work behind 64 KiB of text.
const MAX_NODES: usize = 2048;
/// How much of a comment a message shows.
const SHOWN_CHARS: usize = 40;

/// What is wrong with a text, or a warning.
pub(super) struct YamlFinding {
    pub(super) info: &'static Code,
    pub(super) at: Position,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// What keys may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Text.
    Text,
    /// Text, or an integer, which is read as the text that stands there.
    Integers,
}

/// Reads one document whose first line is line `first_line` of the file.
pub(super) fn parse(
    text: &str,
    first_line: u32,
    keys: Keys,
    warnings: &mut Vec<YamlFinding>,
) -> Result<Node, YamlFinding> {
    let mut options = Options::default();
    options.disallow_directives = true;
    options.emit_unresolved_aliases = true;
    options.flow_nesting_limit = MAX_DEPTH + 1;
    options.block_nesting_limit = MAX_DEPTH + 1;
    let reader = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder {
        lines: text.lines().collect(),
        warnings,
        first_line,
        keys,
        open: Vec::new(),
        root: None,
        nodes: 0,
    };
    for event in reader {
        let (event, span) = event.map_err(|error| builder.syntax(&error))?;
        builder.take(event, span)?;
    }
    let at = Position {
        line: first_line,
        column: 1,
    };
    Ok(builder.root.unwrap_or(Node {
        content: Content::Null,
        at,
    }))
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
    warnings: &'t mut Vec<YamlFinding>,
    first_line: u32,
    keys: Keys,
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

    fn syntax(&self, error: &granit_parser::ScanError) -> YamlFinding {
        use granit_parser::ErrorKind as Kind;
        let info = match error.kind() {
            Kind::RecursionLimitExceeded => &codes::YAML_TOO_DEEP,
            Kind::UnknownAnchor => &codes::YAML_ALIAS,
            _ => &codes::YAML_SYNTAX,
        };
        let at = self.place(error.marker().line(), error.marker().col());
        YamlFinding {
            info,
            at,
            message: format!("expected YAML, found an error: {}", error.info()),
            hint: yaml_advice::of(error.kind()).map(str::to_owned),
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlFinding> {
        let at = self.place(span.start.line(), span.start.col());
        let refuse = |info, message: &str| {
            Err(YamlFinding {
                info,
                at,
                message: message.to_owned(),
                hint: None,
            })
        };
        match event {
            Event::DocumentStart(..) if self.root.is_some() => refuse(
                &codes::YAML_MULTIPLE_DOCUMENTS,
                "expected one YAML document, found a second one",
            ),
            Event::Alias(_) | Event::UnresolvedAlias(_) | Event::Anchor(..) => refuse(
                &codes::YAML_ALIAS,
                "expected a value written out, found an alias (`*name`)",
            ),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(_, anchor, _)
            | Event::MappingStart(_, anchor, _)
                if anchor != 0 =>
            {
                refuse(
                    &codes::YAML_ALIAS,
                    "expected a plain value, found an anchor (`&name`)",
                )
            }
            Event::Scalar(_, _, _, Some(tag))
            | Event::SequenceStart(_, _, Some(tag))
            | Event::MappingStart(_, _, Some(tag)) => {
                let at = span
                    .tag_start()
                    .map_or(at, |start| self.place(start.line(), start.col()));
                let message = format!("expected a value without a tag, found `{}`", tag.original());
                Err(YamlFinding {
                    info: &codes::YAML_TAG,
                    at,
                    message,
                    hint: None,
                })
            }
            Event::Scalar(text, style, ..) => {
                if style == ScalarStyle::Plain {
                    self.check_whole(&text, &span, at)?;
                }
                self.scalar(&text, style, at)
            }
            Event::SequenceStart(..) => self.start(Open::List(Vec::new()), at),
            Event::MappingStart(..) => self.start(
                Open::Mapping {
                    entries: Vec::new(),
                    key: None,
                },
                at,
            ),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            _ => Ok(()),
        }
    }

    /// Checks that no comment cuts a text off. YAML has comments after values, so a short value may have one; a
    /// description is what a model decides by, and no part of it may be lost.
    fn check_whole(&mut self, text: &str, span: &Span, at: Position) -> Result<(), YamlFinding> {
        let line = self.lines.get(span.end.line().saturating_sub(1));
        let rest: String = line.map_or_else(String::new, |line| {
            line.chars().skip(span.end.col()).collect()
        });
        if !rest.starts_with([' ', '\t']) || !rest.trim_start().starts_with('#') {
            return Ok(());
        }
        let key = match self.open.last() {
            Some((
                Open::Mapping {
                    key: Some((key, _)),
                    ..
                },
                _,
            )) => key.as_str(),
            _ => "",
        };
        let describes = key == "description";
        let is_text = matches!(plain(text, at), Ok(Content::Text(_)));
        if !is_text || !(describes || text.contains(char::is_whitespace)) {
            return Ok(());
        }
        let shown: String = rest.trim_start().chars().take(SHOWN_CHARS).collect();
        let found = YamlFinding {
            info: match describes {
                true => &codes::DESCRIPTION_CUT,
                false => &codes::TEXT_CUT,
            },
            at,
            message: format!(
                "expected the whole text, found that ` #` ends it: {shown:?} is a comment"
            ),
            hint: Some(match describes {
                true => "put the text between quotation marks, or the comment on a line by itself"
                    .to_owned(),
                false => format!("put the text between quotation marks if {shown:?} belongs to it"),
            }),
        };
        match describes {
            true => Err(found),
            false => {
                self.warnings.push(found);
                Ok(())
            }
        }
    }

    fn start(&mut self, open: Open, at: Position) -> Result<(), YamlFinding> {
        if self.expects_key() {
            return Err(key_not_text(at, "a mapping or a list"));
        }
        if self.open.len() >= MAX_DEPTH {
            let message =
                format!("expected at most {MAX_DEPTH} nested mappings and lists, found more");
            return Err(YamlFinding {
                info: &codes::YAML_TOO_DEEP,
                at,
                message,
                hint: None,
            });
        }
        self.open.push((open, at));
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlFinding> {
        match self.open.pop() {
            Some((Open::List(items), at)) => self.add(Content::List(items), at),
            Some((Open::Mapping { entries, .. }, at)) => self.add(Content::Mapping(entries), at),
            None => Ok(()),
        }
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some((Open::Mapping { key: None, .. }, _)))
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: Position) -> Result<(), YamlFinding> {
        let content = match style {
            ScalarStyle::Plain => plain(text, at)?,
            _ => Content::Text(text.to_owned()),
        };
        let Some((
            Open::Mapping {
                entries,
                key: key @ None,
            },
            _,
        )) = self.open.last_mut()
        else {
            return self.add(content, at);
        };
        let name = match content {
            Content::Text(name) => name,
            Content::Number(number) if self.keys == Keys::Integers && !number.is_f64() => {
                text.to_owned()
            }
            _ => return Err(key_not_text(at, text)),
        };
        if name == "<<" && matches!(style, ScalarStyle::Plain) {
            let message = "expected the keys written out, found a merge key (`<<`)".to_owned();
            return Err(YamlFinding {
                info: &codes::YAML_MERGE_KEY,
                at,
                message,
                hint: None,
            });
        }
        if let Some(first) = entries.iter().find(|entry| entry.key == name) {
            let message = format!(
                "expected `{name}` once, found it again (first on line {})",
                first.key_at.line
            );
            return Err(YamlFinding {
                info: &codes::YAML_DUPLICATE_KEY,
                at,
                message,
                hint: None,
            });
        }
        *key = Some((name, at));
        Ok(())
    }

    fn add(&mut self, content: Content, at: Position) -> Result<(), YamlFinding> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            let message =
                format!("expected at most {MAX_NODES} values in the front matter, found more");
            return Err(YamlFinding {
                info: &codes::YAML_TOO_MANY_NODES,
                at,
                message,
                hint: None,
            });
        }
        let node = Node { content, at };
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some((Open::List(items), _)) => items.push(node),
            Some((Open::Mapping { entries, key }, _)) => {
                if let Some((key, key_at)) = key.take() {
                    entries.push(Entry {
                        key,
                        key_at,
                        value: node,
                    });
                }
            }
        }
        Ok(())
    }
}

fn key_not_text(at: Position, found: &str) -> YamlFinding {
    let found = if found.is_empty() { "nothing" } else { found };
    YamlFinding {
        info: &codes::YAML_KEY_NOT_STRING,
        at,
        message: format!("expected a key that is text, found {found}"),
        hint: None,
    }
}

/// The YAML 1.2 core schema, less what JSON can't say.
fn plain(text: &str, at: Position) -> Result<Content, YamlFinding> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "true" | "True" | "TRUE" => return Ok(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Content::Bool(false)),
        _ => {}
    }
    let range = |found: &str| YamlFinding {
        info: &codes::NUMBER_RANGE,
        at,
        message: format!(
            "expected a finite number, integers from -(2^53-1) to 2^53-1, found {found}"
        ),
        hint: None,
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Err(range(text));
    }
    let radix = match text.get(..2) {
        Some("0x") => Some(16),
        Some("0o") => Some(8),
        _ => None,
    };
    if let (Some(radix), Some(digits)) = (radix, text.get(2..))
        && !digits.is_empty()
        && digits.chars().all(|c| c.is_digit(radix))
    {
        let number = u64::from_str_radix(digits, radix)
            .map(Number::from)
            .ok()
            .filter(number_in_range);
        return number.map(Content::Number).ok_or_else(|| range(text));
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        let number = text
            .parse::<i64>()
            .map(Number::from)
            .ok()
            .filter(number_in_range);
        return number.map(Content::Number).ok_or_else(|| range(text));
    }
    if is_float(unsigned) {
        let number = text.parse::<f64>().ok().and_then(Number::from_f64);
        return number.map(Content::Number).ok_or_else(|| range(text));
    }
    Ok(Content::Text(text.to_owned()))
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
