//! Finds and extracts the output of a declarative driver (`kind: http`) in the JSON response. The
//! output is validated elsewhere.
//!
//! `response_extract` is a path into a JSON value (AIP-31, "Response extraction"). It is parsed
//! once; each evaluation looks at a limited number of values. A path is `$`, followed by up to 16
//! steps: `.name`, `[0]`, at most one `[*]` and at most one filter `[?(@.name=='text')]`. As in RFC
//! 9535, `[*]` and the filter select several items of a list, and items that lack the rest of the
//! path are left out. The result is then a list.

use serde_json::{Map, Value};

use super::template::TemplateReader;
use crate::codes;
use crate::json::{self, JsonError, Limits};
use crate::source::{Content, FieldReader, MappingReader};

/// The place of the output in a JSON response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputPlace {
    /// The whole body.
    #[default]
    Whole,
    /// The part that `response_extract` selects.
    Extract(JsonPath),
    /// The part that a JSON pointer names.
    Pointer(String),
    /// An object that is made of parts, each with an output name and a JSON pointer.
    Outputs(Vec<(String, String)>),
}

toolward_support::report::codes! {
    /// Why a response holds no output.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum ExtractError: Error {
        /// `pointer` is a JSON pointer, or the path.
        Missing { pointer: String } = "http-response-missing",
            "an HTTP response has nothing at the place that should hold the output",
            ("expected the output at {pointer} of the response, found nothing there");
        /// The output is larger than it may be.
        Limit(error: JsonError) -> (error.code()), ("in the output: {error}");
        TooManySteps { allowed: usize } = "http-response-too-many",
            "the path of the output looks at more values in an HTTP response than a document may have",
            ("expected a path that looks at no more than {allowed} values, found one that does");
    }
}

impl OutputPlace {
    /// Extracts the output from a response's parsed body; null means a response without a body. A
    /// missing part of [`OutputPlace::Outputs`] is left out, and the contract decides whether it
    /// may be missing.
    ///
    /// # Errors
    /// [`OutputPlace::Pointer`] or [`OutputPlace::Extract`] points to no value, the path looks at more
    /// values than `limits` allows, or the output exceeds `limits`. Each part is counted before
    /// it is copied, since several outputs may name the same large part.
    pub fn extract(&self, body: &Value, limits: &Limits) -> Result<Value, ExtractError> {
        let output = match self {
            OutputPlace::Whole => body,
            OutputPlace::Pointer(pointer) => {
                body.pointer(pointer).ok_or_else(|| ExtractError::Missing {
                    pointer: pointer.clone(),
                })?
            }
            OutputPlace::Extract(path) => return path.select(body, limits),
            OutputPlace::Outputs(parts) => return outputs(parts, body, limits),
        };
        json::check(output, limits).map_err(ExtractError::Limit)?;
        Ok(output.clone())
    }

    /// Reads `response_extract`, or `response` of version 0.1.
    pub(super) fn read(
        fields: &mut MappingReader<'_>,
        reading: &mut TemplateReader,
    ) -> OutputPlace {
        let old = fields.take("response");
        let extract = fields.take("response_extract");
        if let (Some(old), Some(extract)) = (&old, &extract) {
            let message = format!(
                "expected `{}` alone, found `{}` beside it",
                extract.name, old.name
            );
            old.note_at_key(&codes::HTTP_EXTRACT_INVALID, message);
        }
        if let Some(field) = extract {
            return path(&field).unwrap_or_default();
        }
        let Some(field) = old else {
            return OutputPlace::Whole;
        };
        reading.old("`response`", field.key_at);
        response(&field)
    }
}

fn outputs(
    parts: &[(String, String)],
    body: &Value,
    limits: &Limits,
) -> Result<Value, ExtractError> {
    let mut output = Map::new();
    let mut left = inner(limits);
    for (name, pointer) in parts {
        if let Some(part) = body.pointer(pointer) {
            output.insert(name.clone(), copied(part, &mut left)?);
        }
    }
    let output = Value::Object(output);
    json::check(&output, limits).map_err(ExtractError::Limit)?;
    Ok(output)
}

/// The limits of a value one level deeper.
fn inner(limits: &Limits) -> Limits {
    Limits {
        depth: limits.depth.saturating_sub(1),
        ..*limits
    }
}

/// A copy of a part, counted before it is made.
fn copied(part: &Value, left: &mut Limits) -> Result<Value, ExtractError> {
    let spent = json::measure(part, left).map_err(ExtractError::Limit)?;
    left.bytes = left.bytes.saturating_sub(spent.bytes);
    left.values = left.values.saturating_sub(spent.values);
    Ok(part.clone())
}

fn path(field: &FieldReader<'_>) -> Option<OutputPlace> {
    let found = field.text()?;
    match JsonPath::parse(found) {
        Ok(path) if path.is_whole() => Some(OutputPlace::Whole),
        Ok(path) => Some(OutputPlace::Extract(path)),
        Err(expected) => {
            let message = format!("expected {expected} in `{}`, found {found:?}", field.name);
            field.refuse(&codes::HTTP_EXTRACT_INVALID, message)
        }
    }
}

fn response(field: &FieldReader<'_>) -> OutputPlace {
    let response = field.whole(|fields| {
    let (whole, parts) = (fields.take("pointer"), fields.take("outputs"));
    let is_mapping = |parts: &FieldReader<'_>| matches!(parts.content, Content::Mapping(_));
    match (whole, parts) {
        (Some(whole), None) => pointer(&whole).map(OutputPlace::Pointer),
        (None, Some(parts)) if is_mapping(&parts) => {
            let members = parts.members().into_iter().flatten();
            let read = members.filter_map(|(key, part)| Some((key.to_owned(), pointer(&part)?)));
            Some(OutputPlace::Outputs(read.collect()))
        }
        _ => {
            let message = format!(
                "expected `{}` to have either `pointer` or a mapping `outputs`, found something else",
                field.name
            );
            field.refuse(&codes::WRONG_VALUE, message)
        }
    }
    });
    response.unwrap_or_default()
}

fn pointer(field: &FieldReader<'_>) -> Option<String> {
    field.text_as(
        &codes::WRONG_VALUE,
        "a JSON pointer such as /data/0",
        |found| {
            let mut escapes = found.split('~').skip(1);
            let fits = escapes.all(|rest| rest.starts_with(['0', '1']))
                && (found.is_empty() || found.starts_with('/'));
            fits.then(|| found.to_owned())
        },
    )
}

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
/// How many digits an index may have.
const MAX_DIGITS: usize = 9;

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// If the path is invalid. The error describes the expected form.
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
    /// Adds the values that the step selects from `value`. Returns `None` if it would look at more
    /// than `left` values.
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
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        match self {
            Step::Member(name) => next.extend(value.get(name.as_str())),
            Step::Item(index) => next.extend(value.get(*index)),
            Step::Each => {
                look(items.len())?;
                next.extend(items);
            }
            Step::Filter(filter) => {
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
            // 1 and 1.0 are equal.
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

/// Splits off a name, which ends at the next special character.
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
