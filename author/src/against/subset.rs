//! Checks, keyword by keyword, whether every value of one schema (the inner) is a value of another
//! (the outer), by JSON Schema 2020-12. If that can't be decided, the result states so
//! ([`What::Unclear`]).

mod place;
mod witness;

use std::collections::BTreeSet;

use serde_json::Value;
use toolward_contract::schema::without_annotations;

use self::place::{SchemaPlace, refers_elsewhere, target};

/// The most pairs of schemas that are compared.
const MAX_PAIRS: usize = 10_000;

/// The most pairs of schemas on which values are tried. Each schema is compiled for that.
const MAX_JUDGEMENTS: usize = 256;

/// Levels of schemas that are compared. A contract's schemas may be 64 deep.
const MAX_DEPTH: usize = 128;

/// Keywords that can't be compared, so they must be equal in both schemas. Each group has the types
/// of the values that its keywords constrain; an empty list means all types.
const WHOLE: [(&[&str], &str); 5] = [
    (&[], "$dynamicRef allOf else if not then"),
    (
        &["array"],
        "contains maxContains minContains prefixItems unevaluatedItems",
    ),
    (&["number", "integer"], "multipleOf"),
    (
        &["object"],
        "dependentRequired dependentSchemas patternProperties propertyNames unevaluatedProperties",
    ),
    (&["string"], "format pattern"),
];

/// Keywords that exempt values from another keyword, each with that keyword.
const OPENING: [(&str, &str); 3] = [
    ("patternProperties", "additionalProperties"),
    ("prefixItems", "items"),
    ("minContains", "contains"),
];

/// A difference because of which some value of the inner schema may not be a value of the outer
/// schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    /// JSON pointer into the inner schema.
    pub(super) inner: String,
    /// JSON pointer into the outer schema.
    pub(super) outer: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The outer schema has no such type.
    Type(String),
    /// The outer schema lists its values, and not all values of the inner schema are among them.
    Values,
    /// The outer schema has a narrower bound.
    Bound(&'static str),
    /// The outer schema's keyword forbids a known value of the inner schema.
    Added(&'static str),
    /// The outer schema requires a property that may be missing.
    Required(String),
    /// The outer schema forbids a property.
    Property(String),
    /// The outer schema forbids properties that it does not name.
    Others,
    /// The outer schema describes an optional property that the inner schema does not name.
    Unnamed(String),
    /// The keyword differs, with an unknown effect.
    Unclear(&'static str),
}

impl What {
    /// The keyword of the difference.
    pub(super) fn keyword(&self) -> &'static str {
        match self {
            Self::Type(_) => "type",
            Self::Values => "enum",
            Self::Bound(keyword) | Self::Added(keyword) | Self::Unclear(keyword) => keyword,
            Self::Required(_) => "required",
            Self::Property(_) | Self::Others => "additionalProperties",
            Self::Unnamed(_) => "properties",
        }
    }
}

/// Returns the differences because of which a value of `inner` may not be a value of `outer`. A
/// property that only one schema names, and that the other schema allows, gives at most
/// [`What::Unnamed`].
pub(super) fn differences(inner: &Value, outer: &Value) -> Vec<Difference> {
    let (inner, outer) = (without_annotations(inner), without_annotations(outer));
    let definitions = ["$defs", "definitions"];
    let mut comparison = Comparison {
        roots: (&inner, &outer),
        same_definitions: definitions
            .iter()
            .all(|key| inner.get(key) == outer.get(key))
            && !refers_elsewhere(&inner, &definitions)
            && !refers_elsewhere(&outer, &definitions),
        followed: BTreeSet::new(),
        left: MAX_PAIRS,
        judgements: MAX_JUDGEMENTS,
        found: Vec::new(),
    };
    comparison.compare(&SchemaPlace::root(&inner), &SchemaPlace::root(&outer));
    let mut found = comparison.found;
    // A definition is reached by each reference to it, but each difference is reported only once.
    let mut told = BTreeSet::new();
    found.retain(|one| told.insert(one.clone()));
    found
}

struct Comparison<'s> {
    roots: (&'s Value, &'s Value),
    /// Whether equal references mean equal schemas.
    same_definitions: bool,
    /// The pairs of references that are being followed.
    followed: BTreeSet<(String, String)>,
    left: usize,
    /// How many more times values may be tried.
    judgements: usize,
    found: Vec<Difference>,
}

impl<'s> Comparison<'s> {
    fn add(&mut self, inner: &SchemaPlace<'_>, outer: &SchemaPlace<'_>, what: What) {
        self.found.push(Difference {
            inner: inner.pointer.clone(),
            outer: outer.pointer.clone(),
            what,
        });
    }

    fn compare(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        if self.same_definitions && inner.schema == outer.schema
            || inner.schema == &Value::Bool(false)
            || place::is_open(outer.schema)
        {
            return;
        }
        let deep = inner.depth.max(outer.depth) > MAX_DEPTH;
        let Some(left) = self.left.checked_sub(1).filter(|_| !deep) else {
            return self.add(inner, outer, What::Unclear("$ref"));
        };
        self.left = left;
        if outer.schema == &Value::Bool(false) {
            return self.add(inner, outer, What::Type("any value".to_owned()));
        }
        if inner.get("$ref").is_some() || outer.get("$ref").is_some() {
            return self.follow(inner, outer);
        }
        let mut changed = vec!["anyOf", "oneOf"];
        changed.retain(|keyword| !self.is_same(keyword, inner, outer));
        // These keywords, and a second list of branches, also apply to each branch. So the branches
        // of the inner schema are compared alone only without them.
        let beside = ["type", "properties"];
        let alone = beside.iter().all(|key| inner.get(key).is_none())
            && !(inner.get("anyOf").is_some() && inner.get("oneOf").is_some());
        for keyword in changed.iter().filter(|_| alone) {
            if let Some(Value::Array(branches)) = inner.get(keyword) {
                for (index, branch) in branches.iter().enumerate() {
                    let branch = inner.below(&format!("{keyword}/{index}"), branch);
                    self.compare(&branch, outer);
                }
                return;
            }
        }
        for keyword in changed {
            if let Some(Value::Array(branches)) = outer.get(keyword) {
                self.branches(keyword, branches, inner, outer);
            }
        }
        self.values(inner, outer);
        self.bounds(inner, outer);
        self.object(inner, outer);
        self.array(inner, outer);
        self.whole(inner, outer);
    }

    /// Whether both schemas have an equal value for the keyword, or neither has it.
    fn is_same(&self, keyword: &str, inner: &SchemaPlace<'_>, outer: &SchemaPlace<'_>) -> bool {
        let (one, other) = (inner.get(keyword), outer.get(keyword));
        one == other
            && (self.same_definitions || one.is_none_or(|value| !refers_elsewhere(value, &[])))
    }

    fn follow(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        let (inner_root, outer_root) = self.roots;
        let (Some(one), Some(other)) = (target(inner, inner_root), target(outer, outer_root))
        else {
            return self.add(inner, outer, What::Unclear("$ref"));
        };
        let pair = (one.pointer.clone(), other.pointer.clone());
        if self.followed.insert(pair.clone()) {
            self.compare(&one, &other);
            self.followed.remove(&pair);
        }
    }

    /// Compares the inner schema with the branches of the outer one. It is enough if one branch
    /// accepts all values; for `oneOf`, the others must accept none. If only one branch has values
    /// in common with the inner schema, its differences are reported. If several branches have such
    /// values, the effect may be unknown.
    fn branches(
        &mut self,
        keyword: &'static str,
        branches: &'s [Value],
        inner: &SchemaPlace<'s>,
        outer: &SchemaPlace<'s>,
    ) {
        let places: Vec<SchemaPlace<'s>> = branches
            .iter()
            .enumerate()
            .map(|(index, branch)| outer.below(&format!("{keyword}/{index}"), branch))
            .collect();
        let mut meeting = Vec::new();
        for place in places.iter().filter(|place| !place.is_apart_from(inner)) {
            let before = self.found.len();
            self.compare(inner, place);
            let own = self.found.split_off(before);
            let fits = own.iter().all(|one| matches!(one.what, What::Unnamed(_)));
            meeting.push((fits, own));
        }
        match &mut meeting[..] {
            [] => self.add(inner, outer, What::Type(inner.types().join(" or "))),
            [(_, own)] => self.found.append(own),
            several => {
                let any = several.iter().any(|(fits, _)| *fits);
                if !any || keyword == "oneOf" {
                    let what = self.judged(keyword, inner, outer);
                    self.add(inner, outer, what);
                }
            }
        }
    }

    fn values(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        let mut missing: BTreeSet<&str> = inner.types().into_iter().collect();
        let allowed = outer.types();
        let numbers = allowed.contains(&"number");
        missing.retain(|name| !(allowed.contains(name) || numbers && *name == "integer"));
        if !missing.is_empty() {
            let missing: Vec<&str> = missing.into_iter().collect();
            return self.add(inner, outer, What::Type(missing.join(" or ")));
        }
        if let Some(listed) = outer.values() {
            let all = inner.values();
            if all.is_none_or(|all| all.iter().any(|value| !listed.contains(value))) {
                self.add(inner, outer, What::Values);
            }
        }
    }

    fn object(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        if !inner.may_be(&["object"]) || inner.values().is_some() {
            return;
        }
        let required = outer.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !inner.requires(name) {
                self.add(inner, outer, What::Required(name.to_owned()));
            }
        }
        let others = outer.get("additionalProperties");
        for (name, schema) in inner.properties() {
            let own = inner.property(name, schema);
            match (outer.named(name), others) {
                (Some(named), _) => self.compare(&own, &outer.property(name, named)),
                (None, Some(Value::Bool(false))) => {
                    self.add(&own, outer, What::Property(name.clone()));
                }
                (None, Some(others)) => {
                    self.compare(&own, &outer.below("additionalProperties", others));
                }
                (None, None) => {}
            }
        }
        for (name, schema) in outer.properties() {
            let named = inner.named(name).is_some();
            if !named && !outer.requires(name) && !place::is_open(schema) {
                self.add(inner, outer, What::Unnamed(name.clone()));
            }
        }
        self.others(inner, outer);
    }

    /// Compares properties that one of the schemas does not name.
    fn others(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        let own = inner.get("additionalProperties");
        let others = outer.get("additionalProperties");
        if let Some(own @ Value::Object(_)) = own {
            let own = inner.below("additionalProperties", own);
            for (name, schema) in outer.properties() {
                if inner.named(name).is_none() {
                    self.compare(&own, &outer.property(name, schema));
                }
            }
            if let Some(others) = others {
                self.compare(&own, &outer.below("additionalProperties", others));
            }
            return;
        }
        match others {
            _ if own == Some(&Value::Bool(false)) => {}
            Some(Value::Bool(false)) => self.add(inner, outer, What::Others),
            Some(Value::Object(members)) if !members.is_empty() => {
                let what = self.judged("additionalProperties", inner, outer);
                self.add(inner, outer, what);
            }
            _ => {}
        }
    }

    fn array(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        let Some(outer_items) = outer.get("items").filter(|_| inner.may_be(&["array"])) else {
            return;
        };
        let list = outer;
        let outer = outer.below("items", outer_items);
        match inner.get("items") {
            Some(items) => self.compare(&inner.below("items", items), &outer),
            None if !place::is_open(outer.schema) && inner.values().is_none() => {
                let what = self.judged("items", inner, list);
                self.add(inner, &outer, what);
            }
            None => {}
        }
    }

    fn whole(&mut self, inner: &SchemaPlace<'s>, outer: &SchemaPlace<'s>) {
        let concerned = WHOLE.iter();
        let concerned = concerned.filter(|(types, _)| types.is_empty() || inner.may_be(types));
        for keyword in concerned.flat_map(|(_, keywords)| keywords.split(' ')) {
            if outer.get(keyword).is_some() && !self.is_same(keyword, inner, outer) {
                let what = self.judged(keyword, inner, outer);
                self.add(inner, outer, what);
            }
        }
        let closes = |keyword: &str| outer.get(keyword).is_some_and(|one| !place::is_open(one));
        for (opening, closing) in OPENING {
            if inner.get(opening).is_some() && outer.get(opening).is_none() && closes(closing) {
                self.add(inner, outer, What::Unclear(opening));
            }
        }
        for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
            // The values to which the keyword applies depend on all keywords next to it, so an
            // equal keyword can have another effect.
            if closes(keyword)
                && self.is_same(keyword, inner, outer)
                && inner.schema != outer.schema
            {
                self.add(inner, outer, What::Unclear(keyword));
            }
        }
    }
}

#[cfg(test)]
mod tests;
