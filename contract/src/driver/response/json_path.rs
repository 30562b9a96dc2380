//! `response_extract`: a path into a JSON value (AIP-31, "OutputPlace extraction"). Parsed once; each evaluation looks at a
//! bounded number of values.
//!
//! `$`, then up to 16 of `.name`, `[0]`, one `[*]` and one `[?(@.name=='text')]`. As in RFC 9535, the last two select
//! several values of a list, without the values that lack the rest of the path; the result is then a list.

use serde_json::Value;

use super::{ExtractError, copied, inner};
use crate::json::{self, Limits};

/// A path into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    text: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Item(usize),
    Each,
    Filter(Filter),
}

/// `@.path == value`
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filter {
    path: Vec<String>,
    equals: Value,
}

const MAX_STEPS: usize = 16;
/// Digits of an index.
const MAX_DIGITS: usize = 9;

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// What is expected in its place.
    pub fn parse(text: &str) -> Result<JsonPath, &'static str> {
        let mut rest = text
            .strip_prefix('$')
            .ok_or("a path that begins with `$`")?;
        let mut steps = Vec::new();
        let mut names = 0;
        while !rest.is_empty() {
            let (step, after) = step(rest)?;
            names += match &step {
                Step::Filter(filter) => filter.path.len(),
                _ => 1,
            };
            if names > MAX_STEPS {
                return Err("at most 16 steps");
            }
            steps.push(step);
            rest = after;
        }
        let count = |is: fn(&&Step) -> bool| steps.iter().filter(is).count();
        if count(|step| **step == Step::Each) > 1 {
            return Err("`[*]` once");
        }
        if count(|step| matches!(step, Step::Filter(_))) > 1 {
            return Err("one filter");
        }
        Ok(JsonPath {
            text: text.to_owned(),
            steps,
        })
    }

    /// The path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is `$`.
    pub(super) fn is_whole(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn select(&self, body: &Value, limits: &Limits) -> Result<Value, ExtractError> {
        let mut found = vec![body];
        let mut several = false;
        let mut left = limits.values;
        for step in &self.steps {
            let lists = matches!(step, Step::Each | Step::Filter(_));
            let mut next = Vec::new();
            for value in found {
                if lists && !several && !value.is_array() {
                    return Err(self.missing());
                }
                step.select(value, &mut next, &mut left)
                    .ok_or(ExtractError::TooManySteps {
                        allowed: limits.values,
                    })?;
            }
            several |= lists;
            found = next;
            if !several && found.is_empty() {
                return Err(self.missing());
            }
        }
        if !several {
            let output = found.first().ok_or_else(|| self.missing())?;
            json::check(output, limits).map_err(ExtractError::Limit)?;
            return Ok((*output).clone());
        }
        let mut left = inner(limits);
        let items = found.into_iter().map(|part| copied(part, &mut left));
        let output = Value::Array(items.collect::<Result<_, _>>()?);
        json::check(&output, limits).map_err(ExtractError::Limit)?;
        Ok(output)
    }

    fn missing(&self) -> ExtractError {
        ExtractError::Missing {
            pointer: self.text.clone(),
        }
    }
}

impl Step {
    /// Adds what it selects of a value. `None`: more values were looked at than are left.
    fn select<'v>(
        &self,
        value: &'v Value,
        next: &mut Vec<&'v Value>,
        left: &mut usize,
    ) -> Option<()> {
        let mut look = |count: usize| {
            *left = left.checked_sub(count)?;
            Some(())
        };
        look(1)?;
        match self {
            Step::Member(name) => next.extend(value.get(name.as_str())),
            Step::Item(index) => next.extend(value.get(*index)),
            Step::Each => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                look(items.len())?;
                next.extend(items);
            }
            Step::Filter(filter) => {
                let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for item in items {
                    look(filter.path.len())?;
                    if filter.holds(item) {
                        next.push(item);
                    }
                }
            }
        }
        Some(())
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let found = self
            .path
            .iter()
            .try_fold(item, |value, name| value.get(name.as_str()));
        match (found, &self.equals) {
            // 1 and 1.0 are one number.
            (Some(Value::Number(found)), Value::Number(equals)) => {
                found.as_f64() == equals.as_f64()
            }
            (Some(found), equals) => found == equals,
            (None, _) => false,
        }
    }
}

fn step(text: &str) -> Result<(Step, &str), &'static str> {
    if let Some(rest) = text.strip_prefix('.') {
        let (name, rest) = name(rest)?;
        return Ok((Step::Member(name), rest));
    }
    let inner = text
        .strip_prefix('[')
        .ok_or("`.name` or `[…]` after each step")?;
    if let Some(inner) = inner.strip_prefix("?(@") {
        return filter(inner);
    }
    let (inner, rest) = inner.split_once(']').ok_or("`]` after `[`")?;
    if inner == "*" {
        return Ok((Step::Each, rest));
    }
    let plain =
        (1..=MAX_DIGITS).contains(&inner.len()) && inner.bytes().all(|b| b.is_ascii_digit());
    let index = plain.then(|| inner.parse().ok()).flatten();
    let index = index.ok_or("a number, `*` or a filter such as `?(@.kind=='a')` in brackets")?;
    Ok((Step::Item(index), rest))
}

fn filter(text: &str) -> Result<(Step, &str), &'static str> {
    const EXPECTED: &str = "a filter such as `[?(@.kind=='a')]`";
    let mut path = Vec::new();
    let mut rest = text;
    while let Some(after) = rest.strip_prefix('.') {
        let (part, after) = name(after)?;
        path.push(part);
        rest = after;
    }
    if path.is_empty() {
        return Err(EXPECTED);
    }
    let rest = rest
        .trim_start_matches(' ')
        .strip_prefix("==")
        .ok_or(EXPECTED)?;
    let rest = rest.trim_start_matches(' ');
    let (equals, rest) = match rest.strip_prefix(['\'', '"']) {
        Some(inner) => {
            let quote = if rest.starts_with('"') { '"' } else { '\'' };
            let (text, rest) = inner.split_once(quote).ok_or(EXPECTED)?;
            if text.contains('\\') {
                return Err("a text without `\\` in the filter");
            }
            (Value::String(text.to_owned()), rest)
        }
        None => {
            let end = rest.find([')', ' ']).ok_or(EXPECTED)?;
            let (text, rest) = rest.split_at_checked(end).ok_or(EXPECTED)?;
            let value = json::parse(text.as_bytes(), &Limits::default()).map_err(|_| EXPECTED)?;
            if value.is_array() || value.is_object() {
                return Err(EXPECTED);
            }
            (value, rest)
        }
    };
    let rest = rest
        .trim_start_matches(' ')
        .strip_prefix(")]")
        .ok_or(EXPECTED)?;
    Ok((Step::Filter(Filter { path, equals }), rest))
}

/// A name up to the next sign of the language.
fn name(text: &str) -> Result<(String, &str), &'static str> {
    let sign = |c: char| {
        c.is_whitespace() || c.is_control() || ".[]()?*@$='\"\\,;:&|!<>/{}`~^%#+".contains(c)
    };
    let end = text.find(sign).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).unwrap_or_default();
    if name.is_empty() {
        return Err("a name after each `.`");
    }
    Ok((name.to_owned(), rest))
}
