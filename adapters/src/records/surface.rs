//! `tool_surface` and `tool_namespace`: which tools a host has, and which of them can be
//! called.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolward_contract::capability::Capability;

use super::references::record;
use crate::records::declaration::{Described, line};
use crate::records::references::timestamp;

const PRODUCER: &str = concat!("toolward/", env!("CARGO_PKG_VERSION"));

/// The tools of a host, which a principal sees at `at`.
pub(crate) fn tool_surface(tools: &[Described<'_>], principal: &str, at: SystemTime) -> Value {
    let mut references = Vec::with_capacity(tools.len());
    let (mut loaded, mut blocked) = (Vec::new(), Vec::new());
    let (mut requirements, mut rules, mut bundles) = (Vec::new(), Vec::new(), Vec::new());
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
        for part in [&*reference, &*info.bundle, &*state] {
            hasher.update(&part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        match refusal {
            None => {
                loaded.push(reference.clone());
                let declared = info.contract.declaration();
                let is_left_out =
                    |one: &&Capability| without.iter().any(|out| out.capability == **one);
                let given = declared.iter().filter(|one| !is_left_out(one));
                let parts = without.iter().flat_map(|out| &out.given);
                let given = given.chain(parts).map(|one| line(&one.to_string()));
                requirements.extend(given);
            }
            Some(error) => blocked.push(json!({
                "tool_id": info.contract.id.to_string(),
                "name": name,
                "reason": error.class,
                "message": line(&error.message),
            })),
        }
        for driver in &info.drivers {
            rules.extend(crate::records::permission::rules(&driver.decision));
        }
        references.push(reference);
        bundles.push(format!("bundle:{}", info.bundle));
    }
    for list in [&mut requirements, &mut rules, &mut bundles] {
        list.sort();
        list.dedup();
    }
    let none: [String; 0] = [];
    record! {
        // Equal for surfaces with equal tools in equal states.
        surface_id = format!("surface:{}", hasher.finalize().to_hex());
        scope = format!("principal:{}", line(principal));
        created_at = timestamp(at);
        producer = PRODUCER;
        tool_refs = references;
        loaded_tools = loaded;
        deferred_tools = none;
        blocked_tools = blocked;
        excluded_tools = none;
        default_tool_choice = "auto";
        capability_requirements = requirements;
        policy_refs = rules;
        runtime_refs = bundles;
        surface_reason = "the tools of the bundles that were named, or are installed";
    }
}

/// The tools of one publisher whose names can collide with this one's. The operator's trust decides about the
/// publisher's prefixes.
pub(crate) fn tool_namespace(tool: &Described<'_>, all: &[Described<'_>]) -> Value {
    let namespace = tool.info.contract.effective_namespace();
    let here = all.iter().filter(|other| {
        other.info.publisher == tool.info.publisher
            && other.info.contract.effective_namespace() == namespace
    });
    record! {
        namespace = line(namespace);
        kind = "publisher";
        source = line(&tool.info.publisher);
        tool_refs = here.map(|one| one.info.contract.major_id()).collect::<Vec<_>>();
    }
}
