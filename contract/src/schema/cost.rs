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
use super::view::resolve;
use super::walk::{Applies, children};
use crate::codes;
use crate::diagnostic::Code;

/// Schemas that may apply to one part of a value, each counted as often as it is reached. Times the
/// values that a document may have ([`crate::json::Limits::values`]), this is what one check costs: a
/// few seconds at the very most.
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
    Costs::of(&graph, &order, &components)
}

/// The key under which a schema looks into a value: a property's name, or `None` for any part.
type Key<'s> = Option<&'s str>;

struct Graph<'s> {
    paths: Vec<String>,
    /// What each schema costs by itself.
    own: Vec<f64>,
    in_place: Vec<Vec<usize>>,
    inside: Vec<Vec<(Key<'s>, usize)>>,
}

impl<'s> Graph<'s> {
    /// All schemas that can come to apply, starting at the root.
    fn of(root: &'s Value) -> Result<Graph<'s>, SchemaError> {
        let mut graph = Graph {
            paths: Vec::new(),
            own: Vec::new(),
            in_place: Vec::new(),
            inside: Vec::new(),
        };
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut waiting: Vec<(&'s Value, usize)> = Vec::new();
        graph.node(root, String::new(), &mut known, &mut waiting);
        while let Some((schema, from)) = waiting.pop() {
            let path = graph.paths.get(from).cloned().unwrap_or_default();
            for keyword in ["$ref", "$dynamicRef"] {
                let Some(reference) = schema.get(keyword).and_then(Value::as_str) else {
                    continue;
                };
                let Some(target) = resolve(root, reference) else {
                    let message =
                        format!("expected `{reference}` to be in the schema, found nothing there");
                    let path = format!("{}/{keyword}", path.trim_start_matches('#'));
                    return Err(SchemaError::new(&codes::SCHEMA_REF, path, message));
                };
                let to = graph.node(target, reference.to_owned(), &mut known, &mut waiting);
                graph.edge(from, Applies::InPlace, to);
            }
            for child in children(schema) {
                if child.applies != Applies::Nowhere {
                    let to =
                        graph.node(child.schema, child.pointer(&path), &mut known, &mut waiting);
                    graph.edge(from, child.applies, to);
                }
            }
        }
        Ok(graph)
    }

    fn node(
        &mut self,
        schema: &'s Value,
        path: String,
        known: &mut HashMap<usize, usize>,
        waiting: &mut Vec<(&'s Value, usize)>,
    ) -> usize {
        *known
            .entry(std::ptr::from_ref(schema).addr())
            .or_insert_with(|| {
                let index = self.paths.len();
                self.paths.push(path);
                self.own.push(own_cost(schema));
                self.in_place.push(Vec::new());
                self.inside.push(Vec::new());
                waiting.push((schema, index));
                index
            })
    }

    fn edge(&mut self, from: usize, applies: Applies<'s>, to: usize) {
        match applies {
            Applies::InPlace => self
                .in_place
                .get_mut(from)
                .into_iter()
                .for_each(|edges| edges.push(to)),
            Applies::Property(name) => self
                .inside
                .get_mut(from)
                .into_iter()
                .for_each(|edges| edges.push((Some(name), to))),
            Applies::Inside => self
                .inside
                .get_mut(from)
                .into_iter()
                .for_each(|edges| edges.push((None, to))),
            Applies::Nowhere => {}
        }
    }

    fn own(&self, node: usize) -> f64 {
        self.own.get(node).copied().unwrap_or(1.0)
    }

    fn in_place(&self, node: usize) -> &[usize] {
        self.in_place.get(node).map_or(&[], Vec::as_slice)
    }

    fn inside(&self, node: usize) -> &[(Key<'s>, usize)] {
        self.inside.get(node).map_or(&[], Vec::as_slice)
    }

    /// Nodes in an order in which subschemas that apply in place come first; an error for a loop.
    fn in_place_order(&self) -> Result<Vec<usize>, SchemaError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            New,
            Open,
            Done,
        }
        let mut visits = vec![Visit::New; self.paths.len()];
        let mut order = Vec::with_capacity(self.paths.len());
        for start in 0..self.paths.len() {
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
                match self.in_place(node).get(next) {
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
        let path = self.paths.get(node).map_or("", String::as_str);
        SchemaError::new(info, path.trim_start_matches('#'), message)
    }

    /// Strongly connected components (Tarjan), those without ways out first: a node's component.
    fn components(&self) -> Vec<usize> {
        let count = self.paths.len();
        let (mut index, mut low, mut component) = (
            vec![usize::MAX; count],
            vec![0; count],
            vec![usize::MAX; count],
        );
        let (mut next_index, mut next_component) = (0, 0);
        let mut path = Vec::new();
        for start in 0..count {
            let mut stack = vec![(start, 0)];
            while let Some((node, edge)) = stack.pop() {
                if edge == 0 {
                    if index.get(node).is_some_and(|&seen| seen != usize::MAX) {
                        continue;
                    }
                    set(&mut index, node, next_index);
                    set(&mut low, node, next_index);
                    next_index += 1;
                    path.push(node);
                }
                let target = self.in_place(node).get(edge).copied();
                let target = target.or_else(|| {
                    self.inside(node)
                        .get(edge.saturating_sub(self.in_place(node).len()))
                        .map(|&(_, to)| to)
                });
                // Taking the minimum of the target's number once it is done, before going on.
                if edge > 0 {
                    let before = edge - 1;
                    let done = self.in_place(node).get(before).copied().or_else(|| {
                        self.inside(node)
                            .get(before.saturating_sub(self.in_place(node).len()))
                            .map(|&(_, to)| to)
                    });
                    if let Some(done) = done.filter(|&done| get(&component, done) == usize::MAX) {
                        let lowest = get(&low, node).min(get(&low, done));
                        set(&mut low, node, lowest);
                    }
                }
                if let Some(target) = target {
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

/// One, and what its own patterns cost: those of `pattern`, and of `patternProperties` for each name.
fn own_cost(schema: &Value) -> f64 {
    let own = schema.get("pattern").is_some_and(Value::is_string);
    let names = schema.get("patternProperties").and_then(Value::as_object);
    let patterns = usize::from(own) + names.map_or(0, serde_json::Map::len);
    1.0 + PATTERN_STEPS * f64::from(u32::try_from(patterns).unwrap_or(u32::MAX))
}

fn get(numbers: &[usize], at: usize) -> usize {
    numbers.get(at).copied().unwrap_or(usize::MAX)
}

fn set(numbers: &mut [usize], at: usize, value: usize) {
    if let Some(slot) = numbers.get_mut(at) {
        *slot = value;
    }
}

/// How often schemas are reached, from the leaves up.
struct Costs;

/// What a schema, with all that applies in place, asks of the parts of a value.
#[derive(Clone, Default)]
struct Reach<'s> {
    /// Per key, how often each schema is reached by one step into the value.
    steps: BTreeMap<(Key<'s>, usize), f64>,
}

impl Costs {
    fn of(
        graph: &Graph<'_>,
        order: &[usize],
        components: &[usize],
    ) -> Result<Option<usize>, SchemaError> {
        let expensive = |node| {
            graph.refuse(&codes::SCHEMA_COST, node, "expected a schema that can be checked in reasonable time, found references that fan out, or too many patterns in one place")
        };
        let mut here = vec![0.0_f64; graph.paths.len()];
        let mut reach: Vec<Reach<'_>> = vec![Reach::default(); graph.paths.len()];
        let mut table = 0;
        for &node in order {
            let mut own = graph.own(node);
            let mut steps: BTreeMap<(Key<'_>, usize), f64> = BTreeMap::new();
            for &inner in graph.in_place(node) {
                own += here.get(inner).copied().unwrap_or_default();
                for (&step, &times) in reach.get(inner).into_iter().flat_map(|inner| &inner.steps) {
                    *steps.entry(step).or_default() += times;
                }
            }
            for &step in graph.inside(node) {
                *steps.entry(step).or_default() += 1.0;
            }
            table += steps.len();
            if own > MAX_STEPS_PER_VALUE || table > MAX_TABLE_ENTRIES {
                return Err(expensive(node));
            }
            if let Some(slot) = here.get_mut(node) {
                *slot = own;
            }
            if let Some(slot) = reach.get_mut(node) {
                slot.steps = steps;
            }
        }
        let mut growth = 1.0_f64;
        // From the components without ways out up: what the rest multiplies is known when needed.
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, &component) in components.iter().enumerate() {
            members.entry(component).or_default().push(node);
        }
        let mut weight: Vec<f64> = vec![1.0; graph.paths.len()];
        for nodes in members.values() {
            let mut heaviest = 1.0_f64;
            for &node in nodes {
                let steps = reach.get(node).map(|reach| &reach.steps);
                let mut inward: HashMap<Key<'_>, f64> = HashMap::new();
                let mut outward: HashMap<Key<'_>, f64> = HashMap::new();
                for (&(key, to), &times) in steps.into_iter().flatten() {
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
                if let Some(slot) = weight.get_mut(node) {
                    *slot = heaviest;
                }
            }
        }
        if growth <= 1.0 {
            return Ok(None);
        }
        let root = weight.first().copied().unwrap_or(1.0);
        let levels = (MAX_STEPS / root).max(1.0).log(growth);
        Ok((0..MAX_DEPTH)
            .find(|&depth| f64::from(depth + 1) > levels)
            .map(|depth| usize::try_from(depth).unwrap_or(0)))
    }
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
