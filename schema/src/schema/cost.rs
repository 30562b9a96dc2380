//! Refuses schemas whose validation could run almost forever: loops, references that fan out, and
//! many patterns for one text. It validates no value.
//!
//! If `a` refers twice to `b`, `b` twice to `c` and so on, a short schema takes 2^n steps. A schema
//! that refers to itself twice for the same part of a value takes 2^depth steps. The validator
//! caches results when it only decides whether a value is valid, but not when it collects errors.
//! So this module builds a graph of the schema and counts its paths. Fan-out without recursion is
//! refused. For recursion, it computes the depth up to which errors can be explained.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::SchemaError;
use super::walk::{Applies, address, children, find_part, patterns, references, resolve};
use crate::codes;
use crate::diagnostic::Code;

/// How many schemas may apply to one part of a value; a schema counts each time it is reached.
/// Multiplied by the number of values in a document ([`crate::json::Limits::values`]), this is the
/// cost of one check: a few seconds at most.
const MAX_STEPS_PER_VALUE: f64 = 500.0;
/// How many schemas a pattern counts as. It looks at every byte of a text, in the worst case about
/// a hundred times; other schemas look at a value once.
const PATTERN_STEPS: f64 = 25.0;
/// The maximum size of the tables in this module.
const MAX_TABLE_ENTRIES: usize = 200_000;
/// How many steps collecting errors may take.
const MAX_STEPS: f64 = 1_000_000.0;
/// The maximum depth of any value.
const MAX_DEPTH: u32 = 64;

/// The largest depth of values for which errors can be collected; `None` means any depth.
pub(super) fn check(closed: &Value) -> Result<Option<usize>, SchemaError> {
    let graph = Graph::of(closed)?;
    let order = graph.in_place_order()?;
    explainable_depth(&graph, &order)
}

/// The key under which a schema looks into a value: a property's name, or `None` for any part.
type Key<'s> = Option<&'s str>;

/// A schema, and the indices of the schemas that it leads to: `in_place` apply to the same value,
/// `inside` to parts of the value.
struct Node<'s> {
    schema: &'s Value,
    in_place: Vec<usize>,
    inside: Vec<(Key<'s>, usize)>,
}

struct Graph<'s> {
    root: &'s Value,
    nodes: Vec<Node<'s>>,
    /// The index of each schema, by its address.
    known: HashMap<usize, usize>,
}

impl<'s> Graph<'s> {
    /// Collects all schemas that can apply, starting at the root.
    fn of(root: &'s Value) -> Result<Graph<'s>, SchemaError> {
        let mut graph = Graph {
            root,
            nodes: Vec::new(),
            known: HashMap::new(),
        };
        let mut next = graph.index(root);
        while let Some(schema) = graph.nodes.get(next).map(|node| node.schema) {
            let (mut in_place, mut inside) = (Vec::new(), Vec::new());
            for (keyword, reference) in references(schema) {
                let Some(target) = resolve(root, reference) else {
                    let message =
                        format!("expected `{reference}` to be in the schema, found nothing there");
                    let path = format!("{}/{keyword}", graph.path(next));
                    return Err(SchemaError::new(&codes::SCHEMA_REF, path, message));
                };
                in_place.push(graph.index(target));
            }
            for child in children(schema) {
                match child.applies {
                    Applies::Nowhere => {}
                    Applies::InPlace => in_place.push(graph.index(child.schema)),
                    Applies::Property(name) => {
                        inside.push((Some(name), graph.index(child.schema)));
                    }
                    Applies::Inside => inside.push((None, graph.index(child.schema))),
                }
            }
            if let Some(node) = graph.nodes.get_mut(next) {
                (node.in_place, node.inside) = (in_place, inside);
            }
            next += 1;
        }
        Ok(graph)
    }

    fn index(&mut self, schema: &'s Value) -> usize {
        *self.known.entry(address(schema)).or_insert_with(|| {
            self.nodes.push(Node {
                schema,
                in_place: Vec::new(),
                inside: Vec::new(),
            });
            self.nodes.len() - 1
        })
    }

    /// The pointer of a schema.
    fn path(&self, node: usize) -> String {
        let schema = self.nodes.get(node).map(|node| address(node.schema));
        let path = find_part(self.root, |path, part| {
            (Some(address(part)) == schema).then(|| path.to_owned())
        });
        path.unwrap_or_default()
    }

    /// The nodes in an order in which a node's in-place subschemas come before it. A loop is an
    /// error.
    fn in_place_order(&self) -> Result<Vec<usize>, SchemaError> {
        let in_place = |node: usize, edge: usize| self.nodes.get(node)?.in_place.get(edge).copied();
        let components = components(self.nodes.len(), in_place);
        let leads_to_itself = |index: &usize| {
            let node = self.nodes.get(*index);
            node.is_some_and(|node| node.in_place.contains(index))
        };
        let looping = components
            .iter()
            .find(|nodes| nodes.len() > 1 || nodes.iter().any(leads_to_itself));
        match looping.and_then(|nodes| nodes.first()) {
            Some(node) => Err(self.refuse(&codes::SCHEMA_LOOP, *node, "expected references to go into the value, found a schema that refers to itself in place")),
            None => Ok(components.concat()),
        }
    }

    fn refuse(&self, info: &'static Code, node: usize, message: &str) -> SchemaError {
        SchemaError::new(info, self.path(node), message)
    }
}

/// The strongly connected components of a graph (Tarjan); a component comes after all components
/// that it leads to. Each starts with the node that was reached first. `target` returns the target
/// of an edge of a node.
fn components(count: usize, target: impl Fn(usize, usize) -> Option<usize>) -> Vec<Vec<usize>> {
    /// Marks a node whose component is known.
    const DONE: usize = usize::MAX - 1;
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; count], vec![0; count]);
    let mut components = Vec::new();
    let (mut next, mut path) = (0, Vec::new());
    for start in 0..count {
        let mut stack = vec![(start, 0_usize)];
        while let Some((node, edge)) = stack.pop() {
            if edge == 0 {
                if get(&index, node) != NEW {
                    continue;
                }
                set(&mut index, node, next);
                set(&mut low, node, next);
                next += 1;
                path.push(node);
            }
            // The last target is finished now: take the minimum of the low numbers of both.
            let last = edge.checked_sub(1).and_then(|edge| target(node, edge));
            if let Some(last) = last.filter(|&last| get(&index, last) != DONE) {
                let lowest = get(&low, node).min(get(&low, last));
                set(&mut low, node, lowest);
            }
            if let Some(target) = target(node, edge) {
                stack.push((node, edge + 1));
                stack.push((target, 0));
            } else if get(&low, node) == get(&index, node) {
                let from = path.iter().rposition(|member| *member == node);
                let members = path.split_off(from.unwrap_or_default());
                for &member in &members {
                    set(&mut index, member, DONE);
                }
                components.push(members);
            }
        }
    }
    components
}

/// The cost of a schema itself: one, plus the cost of the pattern in `pattern` and of each pattern
/// in `patternProperties`.
fn own_cost(schema: &Value) -> f64 {
    let patterns = u32::try_from(patterns(schema, "").count());
    1.0 + PATTERN_STEPS * f64::from(patterns.unwrap_or(u32::MAX))
}

fn get(numbers: &[usize], at: usize) -> usize {
    numbers.get(at).copied().unwrap_or(usize::MAX)
}

fn set<T>(values: &mut [T], at: usize, value: T) {
    if let Some(slot) = values.get_mut(at) {
        *slot = value;
    }
}

/// How often each schema is reached by one step into the value, by key.
type Steps<'s> = BTreeMap<(Key<'s>, usize), f64>;

/// Counts how often schemas are reached, starting at the leaves. Returns the depth up to which
/// errors can be collected; `None` means any depth.
fn explainable_depth(graph: &Graph<'_>, order: &[usize]) -> Result<Option<usize>, SchemaError> {
    let expensive = |node| {
        graph.refuse(&codes::SCHEMA_COST, node, "expected a schema that can be checked in reasonable time, found references that fan out, or too many patterns in one place")
    };
    // `here`: the cost of each schema, including all schemas that apply in place. `reach`: the
    // schemas that each reaches by one step into the value.
    let mut here = vec![0.0_f64; graph.nodes.len()];
    let mut reach: Vec<Steps<'_>> = vec![Steps::new(); graph.nodes.len()];
    let mut table = 0;
    for &index in order {
        let Some(node) = graph.nodes.get(index) else {
            continue;
        };
        let mut own = own_cost(node.schema);
        let mut steps = Steps::new();
        for &inner in &node.in_place {
            own += here.get(inner).copied().unwrap_or_default();
            for (&step, &times) in reach.get(inner).into_iter().flatten() {
                *steps.entry(step).or_default() += times;
            }
        }
        for &step in &node.inside {
            *steps.entry(step).or_default() += 1.0;
        }
        table += steps.len();
        if own > MAX_STEPS_PER_VALUE || table > MAX_TABLE_ENTRIES {
            return Err(expensive(index));
        }
        set(&mut here, index, own);
        set(&mut reach, index, steps);
    }
    let mut growth = 1.0_f64;
    // A component comes after the components that it leads to, so their weights are known when they
    // are needed.
    let components = components(graph.nodes.len(), |node, edge| {
        let node = graph.nodes.get(node)?;
        let inside = |edge: usize| node.inside.get(edge).map(|(_, to)| *to);
        let in_place = node.in_place.get(edge).copied();
        in_place.or_else(|| inside(edge.checked_sub(node.in_place.len())?))
    });
    let mut component_of = vec![0; graph.nodes.len()];
    for (component, nodes) in components.iter().enumerate() {
        for &node in nodes {
            set(&mut component_of, node, component);
        }
    }
    let mut weight: Vec<f64> = vec![1.0; graph.nodes.len()];
    for nodes in &components {
        let mut heaviest = 1.0_f64;
        for &node in nodes {
            let mut inward: HashMap<Key<'_>, f64> = HashMap::new();
            let mut outward: HashMap<Key<'_>, f64> = HashMap::new();
            for (&(key, to), &times) in reach.get(node).into_iter().flatten() {
                if get(&component_of, to) == get(&component_of, node) {
                    *inward.entry(key).or_default() += times;
                } else {
                    let cost = times
                        * weight.get(to).copied().unwrap_or(1.0)
                        * here.get(to).copied().unwrap_or(1.0);
                    *outward.entry(key).or_default() += cost;
                }
            }
            growth = growth.max(largest(&inward));
            heaviest = heaviest.max(largest(&outward));
            if heaviest > MAX_STEPS_PER_VALUE {
                return Err(expensive(node));
            }
        }
        for &node in nodes {
            set(&mut weight, node, heaviest);
        }
    }
    if growth <= 1.0 {
        return Ok(None);
    }
    let root = weight.first().copied().unwrap_or(1.0);
    let levels = (MAX_STEPS / root).max(1.0).log(growth);
    let depth = (0..MAX_DEPTH).find(|&depth| f64::from(depth + 1) > levels);
    Ok(depth.map(|depth| usize::try_from(depth).unwrap_or(0)))
}

/// The largest count for one key, plus the count for any part.
fn largest(times: &HashMap<Key<'_>, f64>) -> f64 {
    let any = times.get(&None).copied().unwrap_or_default();
    let named = times
        .iter()
        .filter(|(key, _)| key.is_some())
        .map(|(_, times)| *times);
    any + named.fold(0.0, f64::max)
}
