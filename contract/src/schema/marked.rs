//! The parts of values that a schema marks: for the host alone, or not for logs.

use serde_json::Value;

use super::{Schema, outward, view};

/// Stands for a sensitive value wherever a person, a record or a log would see it. The ledger has it on
/// disk.
pub const HIDDEN: &str = "[hidden]";

impl Schema {
    /// Whether some property is marked `x-internal`.
    #[must_use]
    pub fn has_internal(&self) -> bool {
        self.inner.marks.internal
    }

    /// Whether some value is marked `writeOnly` or `x-sensitive`.
    #[must_use]
    pub fn has_sensitive(&self) -> bool {
        self.inner.marks.sensitive
    }

    /// JSON pointers of the values in `instance` that the schema marks `writeOnly` or `x-sensitive`,
    /// in any of its branches. They belong in no ledger, log or trace.
    #[must_use]
    pub fn sensitive_paths(&self, instance: &Value) -> Vec<String> {
        if !self.has_sensitive() {
            return Vec::new();
        }
        view::marked(
            &self.inner.closed,
            instance,
            view::Mark::Sensitive,
            &self.inner.patterns,
        )
    }

    /// JSON pointers of the values in `instance` that the schema marks `x-internal`: a model has no
    /// business sending them.
    #[must_use]
    pub fn internal_paths(&self, instance: &Value) -> Vec<String> {
        if !self.has_internal() {
            return Vec::new();
        }
        view::marked(
            &self.inner.closed,
            instance,
            view::Mark::Internal,
            &self.inner.patterns,
        )
    }

    /// JSON pointers of the subschemas of [`Schema::closed`] that are marked `x-internal`.
    #[must_use]
    pub fn internal_fields(&self) -> Vec<String> {
        self.marked_fields(view::Mark::Internal)
    }

    /// JSON pointers of the subschemas of [`Schema::closed`] that are marked `writeOnly` or
    /// `x-sensitive`.
    #[must_use]
    pub fn sensitive_fields(&self) -> Vec<String> {
        self.marked_fields(view::Mark::Sensitive)
    }

    fn marked_fields(&self, mark: view::Mark) -> Vec<String> {
        let mut found = Vec::new();
        view::marked_schemas(&self.inner.closed, mark, "", &mut found);
        found
    }

    /// `instance` as a model may see it: without the values marked `x-internal`. Items of a list
    /// become `null`, so that the others keep their positions.
    #[must_use]
    pub fn outward_value(&self, mut instance: Value) -> Value {
        for path in self.internal_paths(&instance) {
            outward::remove(&mut instance, &path);
        }
        instance
    }

    /// `instance` as people, records and logs may see it (the observable input of Agent Tool): with
    /// [`HIDDEN`] for each sensitive value.
    #[must_use]
    pub fn observable(&self, instance: &Value) -> Value {
        let mut copy = instance.clone();
        for path in self.sensitive_paths(instance) {
            if let Some(value) = copy.pointer_mut(&path) {
                *value = HIDDEN.into();
            }
        }
        copy
    }
}
