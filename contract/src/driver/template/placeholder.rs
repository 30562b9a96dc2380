//! Parses the text between `${` and `}`.

use serde_json::Value;

use super::{SlotSource, TemplatePart, TemplateSlot};
use crate::capability::{Capability, Class};
use crate::json;
use crate::source::nearest;

/// The valid first parts of a placeholder's name.
const SOURCES: [&str; 3] = ["input", "context", "secrets"];

/// The end of the placeholder: the first `}` outside quotes.
pub(super) fn end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'}') => return Some(at),
            (None, b'\'' | b'"') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

/// Reads the placeholder; also returns whether it is spelled as in version 0.1.
pub(super) fn read(inner: &str) -> Result<(TemplatePart, bool), String> {
    let unknown = || {
        let near = inner.split_once('.').and_then(|(source, rest)| {
            let near = nearest(source, SOURCES).filter(|near| *near != source)?;
            Some(format!(": did you mean `${{{near}.{rest}}}`?"))
        });
        format!(
            "expected `${{input.NAME}}`, `${{context.NAME}}` or, in headers, `${{secrets.NAME}}`, found `${{{inner}}}`{}",
            near.unwrap_or_default()
        )
    };
    for (prefix, old) in [("secrets.", false), ("secret.", true)] {
        if let Some(slug) = inner.strip_prefix(prefix) {
            let known = slug != "*" && Capability::of(Class::Secret, slug).is_ok();
            return match known {
                true => Ok((TemplatePart::Secret(slug.to_owned()), old)),
                false => Err(unknown()),
            };
        }
    }
    let mut pieces = pieces(inner).into_iter();
    let name = pieces.next().unwrap_or_default();
    let (source, path) = [SlotSource::Input, SlotSource::Context]
        .into_iter()
        .find_map(|source| {
            let path = name.strip_prefix(source.as_str())?.strip_prefix('.')?;
            Some((source, path))
        })
        .ok_or_else(unknown)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    if !path
        .iter()
        .all(|part| !part.is_empty() && part.chars().all(plain))
    {
        return Err(unknown());
    }
    let mut slot = TemplateSlot::new(source, path);
    for filter in pieces {
        filtered(&mut slot, filter).ok_or_else(|| {
            format!(
                "expected `| default('TEXT')` or, last, `| json` in `${{{inner}}}`, found `| {filter}`"
            )
        })?;
    }
    Ok((TemplatePart::Value(slot), false))
}

/// The parts between the bars (`|`) that are outside quotes, without the spaces around the bars.
fn pieces(inner: &str) -> Vec<&str> {
    let mut quote = None;
    let parts = inner.split(|c: char| {
        match (quote, c) {
            (None, '|') => return true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
        false
    });
    let mut pieces: Vec<&str> = parts.collect();
    if pieces.len() > 1 {
        for (index, piece) in pieces.iter_mut().enumerate() {
            let end = piece.trim_end_matches(' ');
            *piece = if index == 0 {
                end
            } else {
                end.trim_start_matches(' ')
            };
        }
    }
    pieces
}

fn filtered(slot: &mut TemplateSlot, filter: &str) -> Option<()> {
    if slot.json {
        return None;
    }
    if filter == "json" {
        slot.json = true;
        return Some(());
    }
    let argument = filter.strip_prefix("default(")?.strip_suffix(')')?;
    if slot.default.is_some() {
        return None;
    }
    slot.default = Some(literal(argument.trim_matches(' '))?);
    Some(())
}

/// Reads a literal: a text in quotes, without escapes; a number; `true` or `false`.
fn literal(text: &str) -> Option<Value> {
    for quote in ['\'', '"'] {
        if let Some(rest) = text.strip_prefix(quote) {
            let inner = rest.strip_suffix(quote)?;
            return (!inner.contains(quote)).then(|| Value::String(inner.to_owned()));
        }
    }
    let value = json::parse(text.as_bytes(), &json::Limits::default()).ok()?;
    matches!(value, Value::Number(_) | Value::Bool(_)).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn slot(inner: &str) -> Option<(String, Option<Value>, bool)> {
        match read(inner) {
            Ok((TemplatePart::Value(slot), false)) => Some((
                format!("{} {}", slot.source.as_str(), slot.path.join("/")),
                slot.default,
                slot.json,
            )),
            _ => None,
        }
    }

    #[test]
    fn a_placeholder_has_a_path_and_two_filters() {
        let of = |path: &str, default: Option<Value>, json| Some((path.to_owned(), default, json));
        for (inner, expected) in [
            ("input.a", of("input a", None, false)),
            ("context.user.id", of("context user/id", None, false)),
            ("input.a|json", of("input a", None, true)),
            (
                "input.a | default('x')",
                of("input a", Some(json!("x")), false),
            ),
            (
                "input.a | default( \"it's\" ) | json",
                of("input a", Some(json!("it's")), true),
            ),
            (
                "input.a | default('a|b}${input.c}')",
                of("input a", Some(json!("a|b}${input.c}")), false),
            ),
            (
                "input.a | default('')",
                of("input a", Some(json!("")), false),
            ),
            (
                "input.a | default(1.5)",
                of("input a", Some(json!(1.5)), false),
            ),
            (
                "input.a | default(false)",
                of("input a", Some(json!(false)), false),
            ),
        ] {
            assert_eq!(slot(inner), expected, "{inner}");
        }
    }

    #[test]
    fn a_misspelt_source_is_named() {
        let refused = |inner| read(inner).map(|_| ()).expect_err("refused");
        let message = refused("inptu.id");
        assert!(
            message.ends_with(": did you mean `${input.id}`?"),
            "{message}"
        );
        assert!(!refused("env.HOME").contains("did you mean"));
        assert!(!refused("input.").contains("did you mean"));
    }

    #[test]
    fn whatever_is_neither_is_refused() {
        for inner in [
            "",
            " ",
            "input",
            "input.",
            "input.a.",
            "input..a",
            " input.a",
            "input.a ",
            "inputs.a",
            "env.HOME",
            "input.a b",
            "input.a | upper",
            "input.a |",
            "input.a | json | json",
            "input.a | json | default('x')",
            "input.a | default('x') | default('y')",
            "input.a | default(x)",
            "input.a | default('x",
            "input.a | default('x'y')",
            "input.a | default()",
            "input.a | default(null)",
            "input.a | default([1])",
            "input.a | default('x') json",
            "secrets.",
            "secrets.*",
            "secrets.A | json",
            "secrets.A | default('x')",
            "secrets.A B",
            "secret.",
            "context",
        ] {
            assert!(read(inner).is_err(), "{inner}");
        }
    }
}
