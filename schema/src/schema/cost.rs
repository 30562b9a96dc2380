//! Refuses schemas whose validation could run almost without end: loops, references that fan out, and many patterns for
//! one text. Runs no check itself.
//!
//! `a` referring twice to `b`, `b` twice to `c` and so on is short to write and takes 2^n steps to
//! follow; a schema that refers to itself twice for the same part of a value takes 2^depth. The
//! validator remembers what it found for a yes or no, but not while it collects errors. So the schema
//! is laid out as a graph, the paths are counted, fan-out without recursion is refused, and for
//! recursion the depth is found up to which errors can be explained.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::SchemaError;
use super::walk::{Applies, children, references, resolve};
use crate::codes;
use crate::diagnostic::Code;

/// Schemas that may apply to one part of a value, each counted every time that it is reached. Times the
/// values that a document may have ([`crate::json::Limits::values`]), this is what one check costs: a
/// few seconds at most.
const MAX_STEPS_PER_VALUE: f64 = 500.0;
/// What a pattern counts against another schema: it looks at every byte of a text, in the worst case
/// some hundred times, where the others look at a value once.
const PATTERN_STEPS: f64 = 25.0;
/// Bound on the size of the tables made here.
const MAX_TABLE_ENTRIES: usize = 200_000;
/// Steps that collecting errors may take.
const MAX_STEPS: f64 = 1_000_000.0;
/// Depth that every value is held to anyway.
const MAX_DEPTH: u32 = 64;

/// The largest depth of values for which errors can be collected; `None`: any.
pub(super) fn check(closed: &Value) -> Result<Option<usize>, SchemaError> {
    let graph = Graph::of(closed)?;
    let order = graph.in_place_order()?;
    let components = graph.components();
    explainable_depth(&graph, &order, &components)
}

/// The key under which a schema looks into a value: a property's name, or `None` for any part.
type Key<'s> = Option<&'s str>;

/// A schema, and the schemas that it leads to, by their index.
struct Node<'s> {
    path: String,
    /// What the schema costs by itself.
    cost: f64,
    in_place: Vec<usize>,
    inside: Vec<(Key<'s>, usize)>,
}

impl Node<'_> {
    /// The schema that an edge leads to: first the edges in place, then the others.
    fn target(&self, edge: usize) -> Option<usize> {
        let inside = || self.inside.get(edge - self.in_place.len());
        let in_place = self.in_place.get(edge).copied();
        in_place.or_else(|| inside().map(|(_, to)| *to))
    }
}

struct Graph<'s> {
    nodes: Vec<Node<'s>>,
}

impl<'s> Graph<'s> {
    /// All schemas that can come to apply, starting at the root.
    fn of(root: &'s Value) -> Result<Graph<'s>, SchemaError> {
        let mut graph = Graph { nodes: Vec::new() };
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut waiting: Vec<(&'s Value, usize, String)> = Vec::new();
        let mut index_of =
            |graph: &mut Graph<'s>, waiting: &mut Vec<_>, schema: &'s Value, path: String| {
                *known
                    .entry(std::ptr::from_ref::<Value>(schema).addr())
                    .or_insert_with(|| {
                        let index = graph.nodes.len();
                        waiting.push((schema, index, path.clone()));
                        graph.nodes.push(Node {
                            path,
                            cost: own_cost(schema),
                            in_place: Vec::new(),
                            inside: Vec::new(),
                        });
                        index
                    })
            };
        index_of(&mut graph, &mut waiting, root, String::new());
        while let Some((schema, from, path)) = waiting.pop() {
            let (mut in_place, mut inside) = (Vec::new(), Vec::new());
            for (keyword, reference) in references(schema) {
                let Some(target) = resolve(root, reference) else {
                    let message =
                        format!("expected `{reference}` to be in the schema, found nothing there");
                    let path = format!("{}/{keyword}", path.trim_start_matches('#'));
                    return Err(SchemaError::new(&codes::SCHEMA_REF, path, message));
                };
                in_place.push(index_of(
                    &mut graph,
                    &mut waiting,
                    target,
                    reference.to_owned(),
                ));
            }
            for child in children(schema) {
                let key = match child.applies {
                    Applies::Nowhere => continue,
                    Applies::Property(name) => Some(name),
                    Applies::InPlace | Applies::Inside => None,
                };
                let pointer = child.pointer(&path);
                let to = index_of(&mut graph, &mut waiting, child.schema, pointer);
                match child.applies {
                    Applies::InPlace => in_place.push(to),
                    _ => inside.push((key, to)),
                }
            }
            if let Some(node) = graph.nodes.get_mut(from) {
                (node.in_place, node.inside) = (in_place, inside);
            }
        }
        Ok(graph)
    }

    /// Nodes in an order in which subschemas that apply in place come first; an error for a loop.
    fn in_place_order(&self) -> Result<Vec<usize>, SchemaError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            New,
            Open,
            Done,
        }
        let mut visits = vec![Visit::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut stack = vec![(start, 0)];
            while let Some((node, next)) = stack.pop() {
                let Some(visit) = visits.get_mut(node) else {
                    continue;
                };
                if next == 0 {
                    match *visit {
                        Visit::Done => continue,
                        Visit::Open => return Err(self.refuse(&codes::SCHEMA_LOOP, node, "expected references to go into the value, found a schema that refers to itself in place")),
                        Visit::New => *visit = Visit::Open,
                    }
                }
                match self
                    .nodes
                    .get(node)
                    .and_then(|node| node.in_place.get(next))
                {
                    Some(&inner) => stack.extend([(node, next + 1), (inner, 0)]),
                    None => {
                        *visit = Visit::Done;
                        order.push(node);
                    }
                }
            }
        }
        Ok(order)
    }

    fn refuse(&self, info: &'static Code, node: usize, message: &str) -> SchemaError {
        // A path that came from a reference starts with `#`.
        let path = self.nodes.get(node).map_or("", |node| &*node.path);
        SchemaError::new(info, path.trim_start_matches('#'), message)
    }

    /// Strongly connected components (Tarjan), first the ones without ways out: a node's component.
    fn components(&self) -> Vec<usize> {
        let count = self.nodes.len();
        let (mut index, mut low, mut component) = (
            vec![usize::MAX; count],
            vec![0; count],
            vec![usize::MAX; count],
        );
        let (mut next_index, mut next_component) = (0, 0);
        let mut path = Vec::new();
        for start in 0..count {
            let mut stack = vec![(start, 0_usize)];
            while let Some((node, edge)) = stack.pop() {
                if edge == 0 {
                    if get(&index, node) != usize::MAX {
                        continue;
                    }
                    set(&mut index, node, next_index);
                    set(&mut low, node, next_index);
                    next_index += 1;
                    path.push(node);
                }
                let target = |edge: usize| self.nodes.get(node)?.target(edge);
                // Takes the minimum of the last target's number, which is done now.
                let last = edge.checked_sub(1).and_then(target);
                if let Some(last) = last.filter(|&last| get(&component, last) == usize::MAX) {
                    let lowest = get(&low, node).min(get(&low, last));
                    set(&mut low, node, lowest);
                }
                if let Some(target) = target(edge) {
                    stack.push((node, edge + 1));
                    stack.push((target, 0));
                } else if get(&low, node) == get(&index, node) {
                    while let Some(member) = path.pop() {
                        set(&mut component, member, next_component);
                        if member == node {
                            break;
                        }
                    }
                    next_component += 1;
                }
            }
        }
        component
    }
}

/// One, and the cost of its patterns: of `pattern`, and of `patternProperties` for each name.
fn own_cost(schema: &Value) -> f64 {
    let own = schema.get("pattern").is_some_and(Value::is_string);
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let patterns = usize::from(own) + names.map_or(0, serde_json::Map::len);
    1.0 + PATTERN_STEPS * f64::from(u32::try_from(patterns).unwrap_or(u32::MAX))
}

fn get(numbers: &[usize], at: usize) -> usize {
    numbers.get(at).copied().unwrap_or(usize::MAX)
}

fn set<T>(values: &mut [T], at: usize, value: T) {
    if let Some(slot) = values.get_mut(at) {
        *slot = value;
    }
}

/// Per key, how often each schema is reached by one step into the value.
type Steps<'s> = BTreeMap<(Key<'s>, usize), f64>;

/// Counts how often schemas are reached, from the leaves up.
fn explainable_depth(
    graph: &Graph<'_>,
    order: &[usize],
    components: &[usize],
) -> Result<Option<usize>, SchemaError> {
    let expensive = |node| {
        graph.refuse(&codes::SCHEMA_COST, node, "expected a schema that can be checked in reasonable time, found references that fan out, or too many patterns in one place")
    };
    // What a schema, with all that applies in place, costs and reaches.
    let mut here = vec![0.0_f64; graph.nodes.len()];
    let mut reach: Vec<Steps<'_>> = vec![Steps::new(); graph.nodes.len()];
    let mut table = 0;
    for &index in order {
        let Some(node) = graph.nodes.get(index) else {
            continue;
        };
        let mut own = node.cost;
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
    // From the components without ways out up: what the rest multiplies is known when needed.
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (node, &component) in components.iter().enumerate() {
        members.entry(component).or_default().push(node);
    }
    let mut weight: Vec<f64> = vec![1.0; graph.nodes.len()];
    for nodes in members.values() {
        let mut heaviest = 1.0_f64;
        for &node in nodes {
            let mut inward: HashMap<Key<'_>, f64> = HashMap::new();
            let mut outward: HashMap<Key<'_>, f64> = HashMap::new();
            for (&(key, to), &times) in reach.get(node).into_iter().flatten() {
                if get(components, to) == get(components, node) {
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

/// The most that one key gets, with what applies to any part added.
fn largest(times: &HashMap<Key<'_>, f64>) -> f64 {
    let any = times.get(&None).copied().unwrap_or_default();
    let named = times
        .iter()
        .filter(|(key, _)| key.is_some())
        .map(|(_, times)| *times);
    any + named.fold(0.0, f64::max)
}
