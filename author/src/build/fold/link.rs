//! Finds the source of each core function, table, memory and global of a component, and the core
//! instances that can be merged.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentAlias, ExternalKind, Instance, TypeRef,
};

use super::read::{Core, Index, Item};
use super::{FEWEST, Kept};

/// The most names that all modules may import and export. Python's modules have about 6,500.
const MAX_NAMES: usize = 100_000;

/// The kinds of core items that modules import from each other, each with a core index space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Function,
    Table,
    Memory,
    Global,
}

impl Kind {
    pub(super) fn of(kind: ExternalKind) -> Result<Self, Kept> {
        match kind {
            ExternalKind::Func => Ok(Self::Function),
            ExternalKind::Table => Ok(Self::Table),
            ExternalKind::Memory => Ok(Self::Memory),
            ExternalKind::Global => Ok(Self::Global),
            ExternalKind::Tag | ExternalKind::FuncExact => Err(unusual()),
        }
    }

    pub(super) fn of_import(ty: TypeRef) -> Result<Self, Kept> {
        match ty {
            TypeRef::Func(_) => Ok(Self::Function),
            TypeRef::Table(_) => Ok(Self::Table),
            TypeRef::Memory(_) => Ok(Self::Memory),
            TypeRef::Global(_) => Ok(Self::Global),
            TypeRef::Tag(_) | TypeRef::FuncExact(_) => Err(unusual()),
        }
    }
}

/// The origin of a core item, found by following aliases and collections of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source<'a> {
    /// An export of an instance of a module.
    Export { instance: Index, name: &'a str },
    /// A canonical function (a lowered function, or a function of a resource), by its number among
    /// the core functions.
    Canon(Index),
}

/// A core instance.
#[derive(Debug)]
pub(super) enum CoreInstance<'a> {
    /// An instance of a module, with the instances from which it imports.
    Module {
        module: Index,
        arguments: BTreeMap<&'a str, Index>,
    },
    /// A collection of exports of other instances, without a module.
    Collection(BTreeMap<&'a str, Source<'a>>),
}

/// The core index spaces of a component.
#[derive(Debug, Default)]
pub(super) struct Spaces<'a> {
    pub(super) modules: Vec<Core<'a>>,
    pub(super) instances: Vec<CoreInstance<'a>>,
    /// The source of each item, by kind and number.
    sources: BTreeMap<Kind, Vec<Source<'a>>>,
    /// The canonical functions, by their numbers among the core functions.
    pub(super) canons: BTreeMap<Index, &'a CanonicalFunction>,
    pub(super) lifts: Vec<&'a CanonicalFunction>,
}

impl<'a> Spaces<'a> {
    pub(super) fn of(items: &'a [Item<'a>]) -> Result<Self, Kept> {
        let mut spaces = Self::default();
        let mut names: usize = 0;
        for item in items {
            match item {
                Item::Module(module) => {
                    let core = Core::read(module)?;
                    names = names.saturating_add(core.imports.len());
                    names = names.saturating_add(core.exports.len());
                    if names > MAX_NAMES {
                        return Err(Kept::because("its modules have many names"));
                    }
                    spaces.modules.push(core);
                }
                Item::Instance(instance) => spaces.instance(instance)?,
                Item::Alias(ComponentAlias::CoreInstanceExport {
                    kind,
                    instance_index,
                    name,
                }) => {
                    let source = spaces.export(*instance_index, name)?;
                    let sources = spaces.sources.entry(Kind::of(*kind)?);
                    sources.or_default().push(source);
                }
                Item::Canon(canon) => spaces.canon(canon)?,
                Item::Alias(_) | Item::Component(_) | Item::Section { .. } => {}
            }
        }
        Ok(spaces)
    }

    fn instance(&mut self, instance: &Instance<'a>) -> Result<(), Kept> {
        let made = match instance {
            Instance::Instantiate { module_index, args } => CoreInstance::Module {
                module: *module_index,
                arguments: args.iter().map(|one| (one.name, one.index)).collect(),
            },
            Instance::FromExports(exports) => {
                let mut collection = BTreeMap::new();
                for export in exports {
                    let source = self.source(Kind::of(export.kind)?, export.index)?;
                    collection.insert(export.name, source);
                }
                CoreInstance::Collection(collection)
            }
        };
        self.instances.push(made);
        Ok(())
    }

    fn canon(&mut self, canon: &'a CanonicalFunction) -> Result<(), Kept> {
        match canon {
            CanonicalFunction::Lift { .. } => {
                self.lifts.push(canon);
                return Ok(());
            }
            CanonicalFunction::Lower { .. }
            | CanonicalFunction::ResourceNew { .. }
            | CanonicalFunction::ResourceDrop { .. }
            | CanonicalFunction::ResourceRep { .. } => {}
            _ => return Err(Kept::because("it has functions of the asynchronous model")),
        }
        let functions = self.sources.entry(Kind::Function).or_default();
        let number = Index::try_from(functions.len()).map_err(|_| unknown())?;
        functions.push(Source::Canon(number));
        self.canons.insert(number, canon);
        Ok(())
    }

    /// Returns the source of the item with a number.
    pub(super) fn source(&self, kind: Kind, index: Index) -> Result<Source<'a>, Kept> {
        let sources = self.sources.get(&kind).ok_or_else(unknown)?;
        sources.get(index as usize).copied().ok_or_else(unknown)
    }

    /// Returns the source of an export of a core instance.
    pub(super) fn export(&self, instance: Index, name: &'a str) -> Result<Source<'a>, Kept> {
        match self.instances.get(instance as usize).ok_or_else(unknown)? {
            CoreInstance::Module { .. } => Ok(Source::Export { instance, name }),
            CoreInstance::Collection(exports) => exports.get(name).copied().ok_or_else(unknown),
        }
    }

    pub(super) fn module(&self, number: Index) -> Result<&Core<'a>, Kept> {
        self.modules.get(number as usize).ok_or_else(unknown)
    }

    /// Returns the source of each of the module's imports for an instance with these arguments.
    pub(super) fn imports(
        &self,
        module: Index,
        arguments: &BTreeMap<&'a str, Index>,
    ) -> Result<Vec<(Kind, Source<'a>)>, Kept> {
        let mut sources = Vec::new();
        for import in &self.module(module)?.imports {
            let from = arguments.get(import.module).copied().ok_or_else(unknown)?;
            sources.push((Kind::of_import(import.ty)?, self.export(from, import.name)?));
        }
        Ok(sources)
    }
}

/// The instances that are merged, in order.
#[derive(Debug, Default)]
pub(super) struct MergeGroup<'s, 'a> {
    /// Each instance with its place in `members`.
    places: BTreeMap<Index, usize>,
    /// The module of each instance, and the sources of its imports.
    pub(super) members: Vec<(&'s Core<'a>, Vec<(Kind, Source<'a>)>)>,
    /// The number of the last instance.
    pub(super) last: Index,
    /// The numbers of the instances' modules.
    pub(super) modules: BTreeSet<Index>,
}

impl<'s, 'a> MergeGroup<'s, 'a> {
    /// Takes all instances of modules before the first one whose module has a start function. The
    /// reason is that the start function must find all earlier instances complete.
    pub(super) fn of(spaces: &'s Spaces<'a>) -> Result<Self, Kept> {
        let mut group = Self::default();
        let mut complete = false;
        for (number, made) in (0..).zip(&spaces.instances) {
            let CoreInstance::Module { module, arguments } = made else {
                continue;
            };
            let core = spaces.module(*module)?;
            complete |= core.has_start;
            if group.modules.contains(module) {
                return Err(Kept::because("a module has more than one instance"));
            }
            if complete {
                continue;
            }
            group.modules.insert(*module);
            group.places.insert(number, group.members.len());
            let imports = spaces.imports(*module, arguments)?;
            group.members.push((core, imports));
            group.last = number;
        }
        if group.members.len() < FEWEST {
            return Err(Kept::because("it has few core modules"));
        }
        Ok(group)
    }

    /// Returns the place of an instance among the members.
    pub(super) fn member(&self, instance: Index) -> Option<usize> {
        self.places.get(&instance).copied()
    }

    /// Whether a canonical function can only be made after the group, since it uses an item of the
    /// group.
    pub(super) fn waits(
        &self,
        spaces: &Spaces<'a>,
        canon: &CanonicalFunction,
    ) -> Result<bool, Kept> {
        for (kind, index) in uses(canon) {
            if let Source::Export { instance, .. } = spaces.source(kind, index)?
                && self.member(instance).is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the core items that a canonical function names.
pub(super) fn uses(canon: &CanonicalFunction) -> Vec<(Kind, Index)> {
    let (function, options) = match canon {
        CanonicalFunction::Lift {
            core_func_index,
            options,
            ..
        } => (Some(*core_func_index), options),
        CanonicalFunction::Lower { options, .. } => (None, options),
        _ => return Vec::new(),
    };
    let function = function.map(|index| (Kind::Function, index));
    let options = options.iter().filter_map(|option| match option {
        CanonicalOption::Memory(index) => Some((Kind::Memory, *index)),
        CanonicalOption::Realloc(index)
        | CanonicalOption::PostReturn(index)
        | CanonicalOption::Callback(index) => Some((Kind::Function, *index)),
        _ => None,
    });
    function.into_iter().chain(options).collect()
}

fn unusual() -> Kept {
    Kept::because("its modules share something unusual")
}

/// Returns the error for an unknown number. For a valid component this occurs only if it uses a
/// module that was merged.
pub(super) fn unknown() -> Kept {
    Kept::because("a number leads nowhere")
}
