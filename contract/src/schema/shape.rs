//! The property names that a schema shows at its top. An approximation for lints, not validation.

use std::collections::BTreeSet;

use serde_json::Value;

use super::view::resolve;
use super::walk::{Applies, children};

/// Names of the properties of an object schema.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// All that some branch names.
    pub names: BTreeSet<String>,
    /// Those without which no value is valid.
    pub required: BTreeSet<String>,
    /// Whether other names are possible although the schema does not name them.
    pub open: bool,
}

impl Shape {
    pub(super) fn of(closed: &Value) -> Shape {
        let mut shape = Shape::default();
        shape.collect(closed, closed, true, 0);
        // A schema that names nothing describes its properties by patterns, or not at all.
        shape.open = shape.names.is_empty();
        shape
    }

    fn collect(&mut self, schema: &Value, root: &Value, certain: bool, hops: usize) {
        if hops > 16 {
            return;
        }
        if certain {
            let required = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            self.required
                .extend(required.filter_map(Value::as_str).map(str::to_owned));
        }
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|target| resolve(root, target));
        if let Some(target) = target {
            self.collect(target, root, certain, hops + 1);
        }
        for child in children(schema) {
            match child.applies {
                Applies::Property(name) => {
                    self.names.insert(name.to_owned());
                }
                Applies::InPlace if child.keyword != "not" => {
                    self.collect(
                        child.schema,
                        root,
                        certain && child.keyword == "allOf",
                        hops + 1,
                    );
                }
                _ => {}
            }
        }
    }

    /// Whether the schema names other properties, and not this one.
    #[must_use]
    pub fn lacks(&self, name: &str) -> bool {
        !self.open && !self.names.contains(name)
    }

    /// What a name would have to be to be dropped, if it can't be.
    pub(crate) fn refuses_drop(&self, name: &str) -> Option<&'static str> {
        if self.required.contains(name) {
            Some("optional")
        } else if self.lacks(name) {
            Some("known")
        } else {
            None
        }
    }
}
