//! Warnings for authors about schemas that hosts accept: keywords without effect, from other
//! dialects or misspelt, defaults that the schema itself refuses, and parts that clients can't use.

use serde_json::{Map, Value};
use toolward_support::fields::nearest;

use super::compile::build;
use super::inline;
use super::walk::{escape, find, keywords};
use super::{MAX_QUOTED_CHARS, Schema, plain};

/// The 2020-12 equivalent of a keyword of OpenAPI or of an earlier draft.
fn instead(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "additionalItems" => "write `prefixItems`, and `items` for the items after them",
        "dependencies" => "write `dependentRequired` or `dependentSchemas`",
        "discriminator" => "give each branch of `oneOf` a property with `const`",
        "divisibleBy" => "write `multipleOf`",
        "example" => "write `examples`, a list",
        "extends" => "write `allOf`",
        "nullable" => "add \"null\" to `type`, as in `type: [string, \"null\"]`",
        "optional" => "leave the name out of `required`",
        _ => return None,
    })
}

/// The kind of a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaWarningKind {
    /// A keyword that JSON Schema 2020-12 does not have.
    UnknownKeyword,
    /// A default that does not match its schema.
    InvalidDefault,
    /// A composition at the root, which model APIs refuse.
    RootComposed,
    /// A reference that clients are shown unchanged.
    ReferenceKept,
}

/// A warning about a part of a schema that has no effect, has an unexpected effect, or is shown to
/// clients in another form.
#[derive(Clone, Debug)]
pub struct SchemaWarning {
    /// Its kind.
    pub kind: SchemaWarningKind,
    /// JSON pointer into the schema.
    pub path: String,
    /// The expected and the found value.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

impl Schema {
    /// Warnings about parts that are valid but probably not intended, in the order of the schema.
    /// Skips the other schemas of the bundle to which this schema refers. Compiles a part of the
    /// schema for each `default`.
    pub fn warnings(&self) -> Vec<SchemaWarning> {
        let root = &self.inner.closed;
        let mut found = Vec::new();
        find(root, |path, schema| {
            let keywords = schema.as_object()?;
            if !path.contains("/$defs/schema:") {
                found.extend(keywords.keys().filter_map(|key| unknown(key, path)));
                found.extend(default(keywords, path, root));
            }
            None::<()>
        });
        found
    }

    /// Warnings about parts of an input schema that MCP clients can't use, or that clients see in
    /// another form: see [`Schema::plain_view`].
    pub fn input_warnings(&self) -> Vec<SchemaWarning> {
        let closed = &self.inner.closed;
        let shown = self.model_view();
        let mut found = Vec::new();
        let inlined = inline::inline(&shown);
        if plain::composed(&inlined).is_some() && plain::plain(&inlined).is_some() {
            let keyword = plain::composed(closed).unwrap_or_default();
            found.push(SchemaWarning {
                kind: SchemaWarningKind::RootComposed,
                path: format!("/{}", escape(keyword)),
                message: format!(
                    "expected one object, found `{keyword}`; MCP clients are shown one object with the properties of \
                     all branches, of which it requires what all require"
                ),
                hint: "write `type`, `properties` and `required` alone; in a TOOL.md, `metadata.mcp.schemas: exact` \
                       lists the schema unchanged"
                    .to_owned(),
            });
        }
        if let Some((path, found_one)) = inline::kept(&shown) {
            found.push(SchemaWarning {
                kind: SchemaWarningKind::ReferenceKept,
                path,
                message: format!("expected references that can be inlined, found {found_one}"),
                hint: "some clients follow no references: write the levels that are needed; in a TOOL.md, \
                       `metadata.mcp.schemas: exact` lists the schema unchanged"
                    .to_owned(),
            });
        }
        found
    }
}

fn unknown(key: &str, path: &str) -> Option<SchemaWarning> {
    if keywords().any(|known| known == key) || key.starts_with("x-") {
        return None;
    }
    let hint = match (instead(key), nearest(key, keywords())) {
        (Some(instead), _) => instead.to_owned(),
        (None, Some(near)) => format!("did you mean `{near}`?"),
        (None, None) => "remove it, or start its name with `x-`".to_owned(),
    };
    Some(SchemaWarning {
        kind: SchemaWarningKind::UnknownKeyword,
        path: format!("{path}/{}", escape(key)),
        message: format!(
            "expected keywords of JSON Schema 2020-12, found `{key}`, which has no effect"
        ),
        hint,
    })
}

/// A warning about a `default` that does not match its schema. Only references to `$defs` and
/// `definitions` are followed.
fn default(keywords: &Map<String, Value>, path: &str, root: &Value) -> Option<SchemaWarning> {
    let value = keywords.get("default")?;
    let mut alone = keywords.clone();
    for key in ["$defs", "definitions"] {
        if let Some(definitions) = root.get(key) {
            alone.insert(key.to_owned(), definitions.clone());
        }
    }
    let (validator, _) = build(&Value::Object(alone)).ok()?;
    let error = validator.validate(value).err()?;
    let message = match error.instance().to_string().len() > MAX_QUOTED_CHARS {
        true => error.masked().to_string(),
        false => error.to_string(),
    };
    Some(SchemaWarning {
        kind: SchemaWarningKind::InvalidDefault,
        path: format!("{path}/default"),
        message: format!("expected a default that matches its schema: {message}"),
        hint: "correct the default or the schema; callers are shown both".to_owned(),
    })
}
