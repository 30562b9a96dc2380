//! Text with placeholders: `${input.NAME}` and `${secret.SLUG}`. Parsed here, not filled in.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::capability::{Capability, Class};

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Literal text and placeholders in order; no two literals side by side.
    pub parts: Vec<Part>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text as it is.
    Literal(String),
    /// `${input.a.b}`: the value at that path of the (mapped) input; of no path, the input itself.
    Input(Vec<String>),
    /// `${secret.SLUG}`: bound last, in header values only.
    Secret(String),
}

impl Template {
    /// Reads a template. `$${` stands for `${`.
    ///
    /// # Errors
    /// What is wrong, for people: a placeholder that is not closed or not known.
    pub fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                literal.push_str(before);
                literal.push_str("${");
                rest = after;
                continue;
            }
            literal.push_str(before);
            let Some((inner, after)) = after.split_once('}') else {
                return Err(format!("expected `}}` after `${{` in {text:?}"));
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(placeholder(inner)?);
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Template { parts })
    }

    /// The slugs of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(slug) => Some(slug.as_str()),
            _ => None,
        })
    }

    /// The inputs that it uses, by their first name.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Input(path) => path.first().map(String::as_str),
            _ => None,
        })
    }
}

fn placeholder(inner: &str) -> Result<Part, String> {
    if let Some(path) = inner.strip_prefix("input.") {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        if path
            .iter()
            .all(|part| !part.is_empty() && part.chars().all(plain))
        {
            return Ok(Part::Input(path));
        }
    }
    if let Some(slug) = inner.strip_prefix("secret.")
        && slug != "*"
        && Capability::of(Class::Secret, slug).is_ok()
    {
        return Ok(Part::Secret(slug.to_owned()));
    }
    Err(format!(
        "expected `${{input.NAME}}` or, in headers, `${{secret.SLUG}}`, found `${{{inner}}}`"
    ))
}

/// A JSON body with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A value without placeholders.
    Literal(Value),
    /// A text. If it is one placeholder and nothing else, the input's value is put in with its type.
    Text(Template),
    /// A list.
    List(Vec<Body>),
    /// An object, in order.
    Object(Vec<(String, Body)>),
}

impl Body {
    /// The whole input, as it is.
    pub(crate) fn whole() -> Body {
        Body::Text(Template {
            parts: vec![Part::Input(Vec::new())],
        })
    }

    /// Reads a body template; keys are literal.
    ///
    /// # Errors
    /// What is wrong, for people, with the JSON pointer of the text.
    pub fn parse(value: &Value) -> Result<Body, (String, String)> {
        Body::at(value, "")
    }

    fn at(value: &Value, pointer: &str) -> Result<Body, (String, String)> {
        let fail = |message: String| (message, pointer.to_owned());
        Ok(match value {
            Value::String(text) => {
                let template = Template::parse(text).map_err(fail)?;
                if template.secrets().next().is_some() {
                    return Err(fail(
                        "expected secrets only in headers, found one in the body".to_owned(),
                    ));
                }
                Body::Text(template)
            }
            Value::Array(items) => {
                let read = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Body::at(item, &format!("{pointer}/{index}")));
                Body::List(read.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let read = members.iter().map(|(key, value)| {
                    let inner = format!("{pointer}/{}", crate::schema::escape(key));
                    Body::at(value, &inner).map(|body| (key.clone(), body))
                });
                Body::Object(read.collect::<Result<_, _>>()?)
            }
            other => Body::Literal(other.clone()),
        })
    }

    /// Adds the inputs that it uses, by their first name.
    pub(crate) fn inputs<'b>(&'b self, names: &mut BTreeSet<&'b str>) {
        match self {
            Body::Literal(_) => {}
            Body::Text(template) => names.extend(template.inputs()),
            Body::List(items) => items.iter().for_each(|item| item.inputs(names)),
            Body::Object(members) => members.iter().for_each(|(_, body)| body.inputs(names)),
        }
    }
}
