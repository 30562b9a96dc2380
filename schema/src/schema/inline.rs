//! Replaces the references of a schema by their targets, for clients and models that follow no
//! references. Recursive references stay, and point into `$defs`.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::depth_over;
use super::documents::{MAX_DEPTH, has_keyword};
use super::marks::SchemaMark;
use super::walk::{
    ANNOTATIONS, REFERENCES, address, escape, find, for_each_child_mut, is_adjacent, references,
    resolve, targets, without_document,
};

/// How many bytes inlining may add. Definitions that refer to each other can grow exponentially,
/// and a model reads the result.
const MAX_ADDED_BYTES: usize = 32 * 1024;
/// The maximum depth of the result, and of a subschema while the result is made. Clients that parse
/// the result have limits, too.
const MAX_LEVELS: usize = MAX_DEPTH + 2;
/// How many definitions are searched for recursion. The time is quadratic.
const MAX_TARGETS: usize = 128;

/// Keywords that only references need.
const PLUMBING: [&str; 4] = ["$defs", "definitions", "$anchor", "$dynamicAnchor"];

/// A closed (self-contained) schema with its references inlined as far as possible.
pub(super) fn inline(root: &Value) -> Value {
    let targets = Targets::of(root);
    let recursive = targets.recursive();
    Inliner::new(root, &targets, recursive)
        .run()
        .or_else(|| Inliner::new(root, &targets, targets.all()).run())
        .unwrap_or_else(|| root.clone())
}

/// The pointer of the first reference in a closed schema that [`inline`] does not replace, and in
/// words what kind of reference it is; `None` if all are replaced.
pub(super) fn kept(root: &Value) -> Option<(String, &'static str)> {
    let targets = Targets::of(root);
    let recursive = targets.recursive();
    let (kept, why) = match Inliner::new(root, &targets, recursive.clone()).run() {
        Some(inlined) if !has_keyword(&inlined, &["$ref"]) => return None,
        Some(_) => (recursive, "one that leads back to itself"),
        None => (targets.all(), "more than an inlined schema has room for"),
    };
    let is_kept =
        |target| resolve(root, target).is_some_and(|target| kept.contains(&address(target)));
    find(root, |path, schema| {
        let (keyword, _) = references(schema).find(|(_, target)| is_kept(target))?;
        Some((format!("{path}/{keyword}"), why))
    })
}

/// The schemas that a document refers to, and for each of them the schemas that it refers to. The
/// keys are addresses of schemas.
struct Targets<'r> {
    /// Each target, with the fragment of a reference to it.
    found: HashMap<usize, (&'r Value, &'r str)>,
    refers_to: HashMap<usize, HashSet<usize>>,
}

impl<'r> Targets<'r> {
    fn of(root: &'r Value) -> Self {
        let mut targets = Self {
            found: HashMap::new(),
            refers_to: HashMap::new(),
        };
        let mut wanted = vec![root];
        while let Some(schema) = wanted.pop() {
            let mut below = Vec::new();
            find(schema, |_, schema| {
                let here = references(schema);
                below.extend(here.filter_map(|(_, target)| Some((resolve(root, target)?, target))));
                None::<()>
            });
            for (target, fragment) in &below {
                let entry = targets.found.entry(address(target));
                entry.or_insert_with(|| {
                    wanted.push(target);
                    (target, fragment)
                });
            }
            let below = below.into_iter().map(|(target, _)| address(target));
            targets.refers_to.insert(address(schema), below.collect());
        }
        targets
    }

    fn all(&self) -> HashSet<usize> {
        self.found.keys().copied().collect()
    }

    /// The targets that lead back to themselves; all targets if there are too many to search.
    fn recursive(&self) -> HashSet<usize> {
        if self.found.len() > MAX_TARGETS {
            return self.all();
        }
        let mut recursive = self.all();
        recursive.retain(|target| self.reaches(*target, *target));
        recursive
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut seen = HashSet::new();
        let mut wanted = vec![from];
        while let Some(one) = wanted.pop() {
            let next = self.refers_to.get(&one).into_iter().flatten().copied();
            wanted.extend(next.filter(|next| seen.insert(*next)));
        }
        seen.contains(&to)
    }
}

struct Inliner<'r> {
    root: &'r Value,
    targets: &'r Targets<'r>,
    kept: HashSet<usize>,
    /// The definition names of the kept targets found so far.
    names: HashMap<usize, String>,
    taken: HashSet<String>,
    /// Kept targets that are not yet in the definitions.
    wanted: Vec<usize>,
    left: usize,
    failed: bool,
}

impl<'r> Inliner<'r> {
    fn new(root: &'r Value, targets: &'r Targets<'r>, kept: HashSet<usize>) -> Self {
        Self {
            root,
            targets,
            kept,
            names: HashMap::new(),
            taken: HashSet::new(),
            wanted: Vec::new(),
            left: MAX_ADDED_BYTES,
            failed: false,
        }
    }

    /// Makes the result; `None` if it would be too large.
    fn run(mut self) -> Option<Value> {
        let mut schema = self.root.clone();
        self.expand(&mut schema, 0);
        let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
        while let Some(met) = self.wanted.pop() {
            let (Some(name), Some((target, _))) =
                (self.names.get(&met).cloned(), self.targets.found.get(&met))
            else {
                continue;
            };
            let mut definition = (*target).clone();
            self.expand(&mut definition, 1);
            without_document(&mut definition);
            definitions.insert(name, definition);
        }
        if let (false, Value::Object(keywords)) = (definitions.is_empty(), &mut schema) {
            let definitions = definitions.into_iter().collect();
            keywords.insert("$defs".to_owned(), Value::Object(definitions));
        }
        (!self.failed && !depth_over(&schema, MAX_LEVELS)).then_some(schema)
    }

    fn expand(&mut self, schema: &mut Value, level: usize) {
        if level > MAX_LEVELS {
            self.failed = true;
        }
        if self.failed {
            return;
        }
        let parts: Vec<&Value> = targets(schema, self.root).collect();
        if let Value::Object(keywords) = schema {
            keywords.retain(|keyword, target| {
                let is_reference = REFERENCES.contains(&keyword.as_str())
                    && target
                        .as_str()
                        .and_then(|target| resolve(self.root, target))
                        .is_some();
                !is_reference && !PLUMBING.contains(&keyword.as_str())
            });
        }
        for_each_child_mut(schema, |child| self.expand(child, level + 1));
        for target in parts {
            let part = self.part(target, level);
            join(schema, part);
        }
    }

    /// The replacement for a reference to `target`.
    fn part(&mut self, target: &Value, level: usize) -> Value {
        if self.kept.contains(&address(target)) {
            let reference = self.reference(target);
            return Value::Object(Map::from_iter([("$ref".to_owned(), reference.into())]));
        }
        match self.left.checked_sub(target.to_string().len()) {
            Some(left) => self.left = left,
            None => self.failed = true,
        }
        if self.failed {
            return Value::Bool(true);
        }
        let mut copy = target.clone();
        without_document(&mut copy);
        self.expand(&mut copy, level + 1);
        copy
    }

    fn reference(&mut self, target: &Value) -> String {
        let at = address(target);
        if at == address(self.root) {
            return "#".to_owned();
        }
        if !self.names.contains_key(&at) {
            let fragment = self.targets.found.get(&at).map_or("", |(_, text)| *text);
            let name = self.free_name(fragment);
            self.taken.insert(name.clone());
            self.names.insert(at, name);
            self.wanted.push(at);
        }
        let name = self.names.get(&at).map_or("", String::as_str);
        format!("#/$defs/{}", escape(name))
    }

    /// A name for a definition, from the end of a reference to it. Model APIs accept few characters
    /// in names.
    fn free_name(&self, fragment: &str) -> String {
        let end = fragment.rsplit(['/', '#', ':']).next().unwrap_or_default();
        let plain = |c: char| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
            _ => '_',
        };
        let name: String = end.chars().take(40).map(plain).collect();
        if !name.is_empty() && !self.taken.contains(&name) {
            return name;
        }
        (self.taken.len() + 1..)
            .map(|number| format!("{name}_{number}"))
            .find(|name| !self.taken.contains(name))
            .unwrap_or_default()
    }
}

/// Whether a keyword doesn't affect which values are valid, so that it may be next to a copied
/// target.
fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

/// Whether a keyword is a mark. A mark applies to a value if any of the value's schemas has it.
pub(super) fn is_mark(keyword: &str) -> bool {
    SchemaMark::Sensitive.is_set_by(keyword) || SchemaMark::Internal.is_set_by(keyword)
}

/// Whether `more` can be added to the keywords of `schema` with the effect of an `allOf` of both.
pub(super) fn can_add(schema: &Map<String, Value>, more: &Map<String, Value>) -> bool {
    more.iter()
        .all(|(keyword, value)| match schema.get(keyword) {
            Some(_) if is_mark(keyword) => *value == Value::Bool(true),
            _ if is_annotation(keyword) => true,
            Some(own) => own == value,
            None => !is_adjacent(keyword),
        })
}

/// Merges the target of a reference with the keywords next to the reference.
fn join(schema: &mut Value, part: Value) {
    let Value::Object(keywords) = schema else {
        return;
    };
    match part {
        Value::Bool(true) => {}
        Value::Object(mut copy) if can_add(&copy, keywords) => {
            copy.extend(std::mem::take(keywords));
            *keywords = copy;
        }
        // A kept reference may have other keywords next to it.
        Value::Object(copy) if copy.keys().eq(["$ref"]) && !keywords.contains_key("$ref") => {
            keywords.extend(copy);
        }
        part => match keywords.get_mut("allOf") {
            Some(Value::Array(parts)) => parts.push(part),
            _ => {
                keywords.insert("allOf".to_owned(), Value::Array(vec![part]));
            }
        },
    }
}
