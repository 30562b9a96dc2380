//! `tool_surface` and `tool_namespace`: which tools a host has, and which of them can be
//! called.

use std::time::SystemTime;

use serde::Serialize;
use toolward_contract::capability::Capability;
use toolward_host::ErrorClass;

use crate::records::declaration::{Described, line};
use crate::records::references::timestamp;
use crate::records::version::SchemaVersion;

/// The tools of a host for one principal.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Surface {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Equal for surfaces with equal tools in equal states.
    pub surface_id: String,
    /// Whom it is for.
    pub scope: String,
    /// When it was looked at.
    pub created_at: String,
    /// What made it.
    pub producer: &'static str,
    /// All tools, as `id@major`.
    pub tool_refs: Vec<String>,
    /// Those that can be called.
    pub loaded_tools: Vec<String>,
    /// Those whose schema is loaded later: none.
    pub deferred_tools: [(); 0],
    /// Those that can't be called.
    pub blocked_tools: Vec<BlockedTool>,
    /// Those that are kept from this principal.
    pub excluded_tools: Vec<BlockedTool>,
    /// Always `auto`: the caller chooses.
    pub default_tool_choice: &'static str,
    /// The capabilities that the tools which can be called declare.
    pub capability_requirements: Vec<String>,
    /// The rules that gave something to its tools, or that deny one.
    pub policy_refs: Vec<String>,
    /// The bundles of its tools, as BLAKE3 of their manifests.
    pub runtime_refs: Vec<String>,
    /// Why these tools are on it.
    pub surface_reason: &'static str,
}

/// A tool that can't be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BlockedTool {
    /// The contract's id.
    pub tool_id: String,
    /// The name that it would be called by.
    pub name: String,
    /// The class of the error that every call of it ends with.
    pub reason: ErrorClass,
    /// The same in words.
    pub message: String,
}

const PRODUCER: &str = concat!("toolward/", env!("CARGO_PKG_VERSION"));

impl Surface {
    /// That of all these tools, which a principal sees at `at`.
    #[must_use]
    pub fn of(tools: &[Described<'_>], principal: &str, at: SystemTime) -> Self {
        let mut surface = Self {
            schema_version: SchemaVersion,
            surface_id: String::new(),
            scope: format!("principal:{}", line(principal)),
            created_at: timestamp(at),
            producer: PRODUCER,
            tool_refs: Vec::with_capacity(tools.len()),
            loaded_tools: Vec::new(),
            deferred_tools: [],
            blocked_tools: Vec::new(),
            excluded_tools: Vec::new(),
            default_tool_choice: "auto",
            capability_requirements: Vec::new(),
            policy_refs: Vec::new(),
            runtime_refs: Vec::new(),
            surface_reason: "the tools of the bundles that were named, or are installed",
        };
        let mut hasher = blake3::Hasher::new();
        for Described { info, name } in tools {
            let reference = info.contract.major_id();
            let refusal = info.refusal();
            let class = refusal.as_ref().map(|error| error.class);
            let without = info.without();
            let mut state = format!("{class:?}");
            for one in &without {
                state.push_str(&format!(" without {one}"));
            }
            for part in [&reference, &info.bundle, &state] {
                hasher.update(&part.len().to_le_bytes());
                hasher.update(part.as_bytes());
            }
            match refusal {
                None => {
                    surface.loaded_tools.push(reference.clone());
                    let declared = info.contract.declaration();
                    let is_left_out =
                        |one: &&Capability| without.iter().any(|out| out.capability == **one);
                    let given = declared.iter().filter(|one| !is_left_out(one));
                    let parts = without.iter().flat_map(|out| &out.given);
                    let given = given.chain(parts).map(|one| line(&one.to_string()));
                    surface.capability_requirements.extend(given);
                }
                Some(error) => surface.blocked_tools.push(BlockedTool {
                    tool_id: info.contract.id.to_string(),
                    name: (*name).to_owned(),
                    reason: error.class,
                    message: line(&error.message),
                }),
            }
            for driver in &info.drivers {
                surface
                    .policy_refs
                    .extend(crate::records::permission::rules(&driver.decision));
            }
            surface.tool_refs.push(reference);
            surface.runtime_refs.push(format!("bundle:{}", info.bundle));
        }
        for list in [
            &mut surface.capability_requirements,
            &mut surface.policy_refs,
            &mut surface.runtime_refs,
        ] {
            list.sort();
            list.dedup();
        }
        surface.surface_id = format!("surface:{}", hasher.finalize().to_hex());
        surface
    }
}

/// The tools of one publisher whose names can collide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Namespace {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its name.
    pub namespace: String,
    /// Where it comes from: always `publisher`, whose prefixes the operator's trust decides.
    pub kind: &'static str,
    /// The publisher.
    pub source: String,
    /// Its tools on this host, as `id@major`.
    pub tool_refs: Vec<String>,
}

impl Namespace {
    /// That of a tool among all tools of its host.
    #[must_use]
    pub fn of(tool: &Described<'_>, all: &[Described<'_>]) -> Self {
        let namespace = tool.info.contract.effective_namespace();
        let here = all.iter().filter(|other| {
            other.info.publisher == tool.info.publisher
                && other.info.contract.effective_namespace() == namespace
        });
        Self {
            schema_version: SchemaVersion,
            namespace: line(namespace),
            kind: "publisher",
            source: line(&tool.info.publisher),
            tool_refs: here.map(|one| one.info.contract.major_id()).collect(),
        }
    }
}
