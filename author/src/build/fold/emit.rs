//! Writes a component in which one core instance replaces a group of instances.

use std::collections::BTreeMap;

use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent, RoundtripReencoder};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, Component, ComponentAliasSection, ExportKind, InstanceSection,
    ModuleArg, RawSection,
};
use wasmparser::{CanonicalFunction, ComponentAlias, ExternalKind};

use super::link::{CoreInstance, Kind, MergeGroup, Source, Spaces, unknown, uses};
use super::merge::{Layout, Outside, export_kind};
use super::read::{Index, Item};
use super::{Kept, TABLE, trampolines};

/// The numbers of the sections with a core module and with a component.
const MODULE_SECTION: u8 = 1;
const COMPONENT_SECTION: u8 = 4;

/// Writes the items without a change.
pub(super) fn unchanged(items: &[Item<'_>]) -> Result<Vec<u8>, Kept> {
    let mut component = Component::new();
    let mut same = RoundtripReencoder;
    for item in items {
        match item {
            Item::Module(module) => section(&mut component, MODULE_SECTION, module),
            Item::Component(nested) => section(&mut component, COMPONENT_SECTION, nested),
            Item::Section { id, content } => section(&mut component, *id, content),
            Item::Instance(instance) => {
                let mut instances = InstanceSection::new();
                same.parse_instance(&mut instances, instance.clone())?;
                component.section(&instances);
            }
            Item::Alias(alias) => same_alias(&mut component, alias)?,
            Item::Canon(canon) => {
                let mut canons = CanonicalFunctionSection::new();
                same.parse_component_canonical(&mut canons, canon.clone())?;
                component.section(&canons);
            }
        }
    }
    Ok(component.finish())
}

fn section(component: &mut Component, id: u8, content: &[u8]) {
    component.section(&RawSection { id, data: content });
}

fn same_alias(component: &mut Component, alias: &ComponentAlias<'_>) -> Result<(), Kept> {
    let mut aliases = ComponentAliasSection::new();
    aliases.alias(RoundtripReencoder.component_alias(alias.clone())?);
    component.section(&aliases);
    Ok(())
}

/// Writes the items. One instance replaces all members of the group, at the position of the last
/// member.
pub(super) fn folded<'a>(
    items: &[Item<'a>],
    spaces: &Spaces<'a>,
    group: &MergeGroup<'_, 'a>,
) -> Result<Vec<u8>, Kept> {
    let layout = Layout::of(group)?;
    let mut emitter = Emitter {
        component: Component::new(),
        spaces,
        group,
        layout: &layout,
        exports: exports(spaces, group, &layout)?,
        modules: BTreeMap::new(),
        instances: BTreeMap::new(),
        known: BTreeMap::new(),
        merged: None,
        next: Next::default(),
    };
    let (mut module, mut instance, mut function) = (0, 0, 0);
    // The canonical functions that use the merged module and so must be written after it, by their
    // numbers among the core functions.
    let mut waiting = Vec::new();
    for item in items {
        match item {
            Item::Module(bytes) => {
                if !group.modules.contains(&module) {
                    let new = emitter.module(bytes);
                    emitter.modules.insert(module, new);
                }
                module += 1;
            }
            Item::Component(nested) => section(&mut emitter.component, COMPONENT_SECTION, nested),
            Item::Section { id, content } => section(&mut emitter.component, *id, content),
            Item::Instance(_) => {
                emitter.instance_of_component(instance)?;
                if instance == group.last {
                    emitter.group(&waiting)?;
                }
                instance += 1;
            }
            // New aliases of core exports are written when they are needed.
            Item::Alias(ComponentAlias::CoreInstanceExport { kind, .. }) => {
                function += Index::from(*kind == ExternalKind::Func);
            }
            Item::Alias(alias) => same_alias(&mut emitter.component, alias)?,
            Item::Canon(canon) => {
                let lift = matches!(canon, CanonicalFunction::Lift { .. });
                let waits = emitter.merged.is_none() && group.waits(spaces, canon)?;
                match (waits, lift) {
                    (true, true) => return Err(Kept::because("a function is exported early")),
                    (true, false) => waiting.push(function),
                    (false, _) => emitter.canon(function, canon)?,
                }
                function += Index::from(!lift);
            }
        }
    }
    Ok(emitter.component.finish())
}

/// Returns the items that the merged module must export, since they are used outside the group.
/// Each item gets a new name.
fn exports<'a>(
    spaces: &Spaces<'a>,
    group: &MergeGroup<'_, 'a>,
    layout: &Layout<'_, 'a>,
) -> Result<BTreeMap<(Kind, Index), String>, Kept> {
    let mut used = Vec::new();
    for canon in spaces.lifts.iter().chain(spaces.canons.values()) {
        for (kind, index) in uses(canon) {
            used.push((kind, spaces.source(kind, index)?));
        }
    }
    for (number, made) in (0..).zip(&spaces.instances) {
        if let CoreInstance::Module { module, arguments } = made
            && group.member(number).is_none()
        {
            used.extend(spaces.imports(*module, arguments)?);
        }
    }
    let mut exports = BTreeMap::new();
    for (kind, source) in used {
        if let Source::Export { instance, name } = source
            && let Some(member) = group.member(instance)
        {
            let name_of_new = exports.len().to_string();
            let index = layout.export(member, kind, name)?;
            exports.entry((kind, index)).or_insert(name_of_new);
        }
    }
    Ok(exports)
}

/// The next free numbers of the new component.
#[derive(Debug, Default)]
struct Next {
    modules: Index,
    instances: Index,
    of_kinds: BTreeMap<Kind, Index>,
}

fn take(next: &mut Index) -> Index {
    let taken = *next;
    *next += 1;
    taken
}

struct Emitter<'e, 'a> {
    component: Component,
    spaces: &'e Spaces<'a>,
    group: &'e MergeGroup<'e, 'a>,
    layout: &'e Layout<'e, 'a>,
    exports: BTreeMap<(Kind, Index), String>,
    /// The new numbers of modules and instances outside the group, by their old numbers.
    modules: BTreeMap<Index, Index>,
    instances: BTreeMap<Index, Index>,
    /// The new numbers of the items that have one by now.
    known: BTreeMap<(Kind, Source<'a>), Index>,
    /// The instance of the merged module, once it is made.
    merged: Option<Index>,
    next: Next,
}

impl<'a> Emitter<'_, 'a> {
    fn module(&mut self, bytes: &[u8]) -> Index {
        section(&mut self.component, MODULE_SECTION, bytes);
        take(&mut self.next.modules)
    }

    /// Writes an instance of a module, if it is outside the group. Collections of exports are
    /// written when they are needed.
    fn instance_of_component(&mut self, number: Index) -> Result<(), Kept> {
        let spaces = self.spaces;
        let made = spaces.instances.get(number as usize);
        let Some(CoreInstance::Module { module, arguments }) = made else {
            return Ok(());
        };
        if self.group.member(number).is_some() {
            return Ok(());
        }
        // An argument from which nothing is imported must be given, too.
        let given = arguments.keys().map(|name| (*name, Vec::new()));
        let mut given: BTreeMap<&str, Vec<_>> = given.collect();
        let sources = spaces.imports(*module, arguments)?;
        for (import, (kind, source)) in spaces.module(*module)?.imports.iter().zip(sources) {
            let index = self.index(kind, source)?;
            let exports = given.entry(import.module).or_default();
            exports.push((import.name, export_kind(kind), index));
        }
        let mut arguments = Vec::new();
        for (name, exports) in given {
            arguments.push((name, ModuleArg::Instance(self.collection(exports))));
        }
        let module = self.modules.get(module).copied().ok_or_else(unknown)?;
        let new = self.instantiate(module, arguments);
        self.instances.insert(number, new);
        Ok(())
    }

    fn instantiate(&mut self, module: Index, arguments: Vec<(&str, ModuleArg)>) -> Index {
        let mut instances = InstanceSection::new();
        instances.instantiate(module, arguments);
        self.component.section(&instances);
        take(&mut self.next.instances)
    }

    fn collection(&mut self, exports: Vec<(&str, ExportKind, Index)>) -> Index {
        let mut instances = InstanceSection::new();
        instances.export_items(exports);
        self.component.section(&instances);
        take(&mut self.next.instances)
    }

    fn alias(&mut self, instance: Index, kind: Kind, name: &str) -> Index {
        let mut aliases = ComponentAliasSection::new();
        aliases.alias(Alias::CoreInstanceExport {
            instance,
            kind: export_kind(kind),
            name,
        });
        self.component.section(&aliases);
        self.take(kind)
    }

    fn take(&mut self, kind: Kind) -> Index {
        take(self.next.of_kinds.entry(kind).or_default())
    }

    /// Returns the number of an item in the new component. Writes an alias for the item if it has
    /// no number yet.
    fn index(&mut self, kind: Kind, source: Source<'a>) -> Result<Index, Kept> {
        if let Some(index) = self.known.get(&(kind, source)) {
            return Ok(*index);
        }
        let Source::Export { instance, name } = source else {
            return Err(Kept::because("a function is used before it is made"));
        };
        let index = match self.group.member(instance) {
            Some(member) => {
                let index = self.layout.export(member, kind, name)?;
                let name = self.exports.get(&(kind, index)).cloned();
                let merged = self.merged.ok_or_else(unknown)?;
                self.alias(merged, kind, &name.ok_or_else(unknown)?)
            }
            None => {
                let instance = self.instances.get(&instance).copied();
                self.alias(instance.ok_or_else(unknown)?, kind, name)
            }
        };
        self.known.insert((kind, source), index);
        Ok(index)
    }

    /// Writes a canonical function. `number` is its old number, if it counts among the core
    /// functions.
    fn canon(&mut self, number: Index, canon: &CanonicalFunction) -> Result<(), Kept> {
        let mut numbers = NewNumbers(BTreeMap::new());
        for (kind, old) in uses(canon) {
            let source = self.spaces.source(kind, old)?;
            numbers.0.insert((kind, old), self.index(kind, source)?);
        }
        let mut canons = CanonicalFunctionSection::new();
        numbers.parse_component_canonical(&mut canons, canon.clone())?;
        self.component.section(&canons);
        if !matches!(canon, CanonicalFunction::Lift { .. }) {
            let index = self.take(Kind::Function);
            let key = (Kind::Function, Source::Canon(number));
            self.known.insert(key, index);
        }
        Ok(())
    }

    /// Writes the merged module with its instance, and the canonical functions that waited for it.
    fn group(&mut self, waiting: &[Index]) -> Result<(), Kept> {
        let layout = self.layout;
        let outside = layout.outside.iter().copied();
        let late: Vec<Outside> = outside
            .filter(|outside| waiting.binary_search(&outside.canon).is_ok())
            .collect();
        let (trampolines, filler) = trampolines(&layout.types(&late)?);
        let trampolines = self.module(&trampolines);
        let trampolines = self.instantiate(trampolines, Vec::new());

        let mut numbers = (0_u32..).map(|number| number.to_string());
        let mut given = Vec::new();
        for outside in &layout.outside {
            given.push(match waiting.binary_search(&outside.canon) {
                Ok(_) => {
                    let name = numbers.next().ok_or_else(unknown)?;
                    self.alias(trampolines, Kind::Function, &name)
                }
                Err(_) => self.index(Kind::Function, Source::Canon(outside.canon))?,
            });
        }
        let given = self.functions(&given);
        let merged = layout.module(&self.exports)?;
        let merged = self.module(&merged);
        self.merged = Some(self.instantiate(merged, vec![("", ModuleArg::Instance(given))]));

        for number in waiting {
            let canon = self.spaces.canons.get(number).ok_or_else(unknown)?;
            self.canon(*number, canon)?;
        }
        let mut filled = Vec::new();
        for outside in &late {
            filled.push(self.index(Kind::Function, Source::Canon(outside.canon))?);
        }
        let table = self.alias(trampolines, Kind::Table, TABLE);
        let filled = self.functions(&filled);
        let table = self.collection(vec![(TABLE, ExportKind::Table, table)]);
        let filler = self.module(&filler);
        let arguments = [("", filled), (TABLE, table)];
        let arguments = arguments.map(|(name, instance)| (name, ModuleArg::Instance(instance)));
        self.instantiate(filler, arguments.into());
        Ok(())
    }

    /// Writes a collection of functions with the names `"0"`, `"1"` and so on.
    fn functions(&mut self, functions: &[Index]) -> Index {
        let names: Vec<String> = (0..functions.len())
            .map(|number| number.to_string())
            .collect();
        let named = names.iter().zip(functions);
        let named = named.map(|(name, function)| (name.as_str(), ExportKind::Func, *function));
        self.collection(named.collect())
    }
}

/// The new numbers of the items that one canonical function names.
struct NewNumbers(BTreeMap<(Kind, Index), Index>);

impl NewNumbers {
    fn of(&self, kind: Kind, old: Index) -> Result<Index, Error<Kept>> {
        let found = self.0.get(&(kind, old)).copied();
        found.ok_or_else(|| Error::UserError(unknown()))
    }
}

impl Reencode for NewNumbers {
    type Error = Kept;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Kept>> {
        self.of(Kind::Function, function)
    }

    fn memory_index(&mut self, memory: u32) -> Result<u32, Error<Kept>> {
        self.of(Kind::Memory, memory)
    }
}

impl ReencodeComponent for NewNumbers {}
