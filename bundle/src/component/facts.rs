//! The surface of a component in the form in which a cache of compiled code keeps it, so that a host
//! can check a component's declarations without reading the component.

use serde::{Deserialize, Serialize};

use super::{Export, Surface};

/// Rises whenever the form changes, or [`Surface::read`] refuses other components.
const VERSION: u32 = 1;

/// The kinds of an export.
const EXPORT_KINDS: [&str; 6] = ["instance", "func", "type", "component", "module", "value"];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Facts {
    version: u32,
    imports: Vec<String>,
    /// Names and kinds.
    exports: Vec<(String, String)>,
    modules: usize,
    components: usize,
    core_instances: u64,
    instance_bytes: u64,
    size: u64,
}

impl Surface {
    /// The facts about the component in `bytes`. `None` if it can't be read, or does not export
    /// [`HANDLER`](super::HANDLER): then its functions must be read as well.
    pub fn facts(bytes: &[u8]) -> Option<Vec<u8>> {
        let surface = Self::read(bytes).ok().filter(Self::exports_handler)?;
        let exports = surface.exports.into_iter();
        let facts = Facts {
            version: VERSION,
            imports: surface.imports,
            exports: exports
                .map(|export| (export.name, export.kind.to_owned()))
                .collect(),
            modules: surface.modules,
            components: surface.components,
            core_instances: surface.core_instances,
            instance_bytes: surface.instance_bytes,
            size: surface.size,
        };
        serde_json::to_vec(&facts).ok()
    }

    /// Whether these facts suffice for a component of this size, so that it need not be read.
    pub fn is_known(facts: &[u8], size: u64) -> bool {
        Self::from_facts(facts).is_some_and(|surface| surface.size == size)
    }

    /// Reads the surface from facts, which must come from a trusted source. `None` for facts of
    /// another version.
    pub fn from_facts(facts: &[u8]) -> Option<Self> {
        let facts: Facts = serde_json::from_slice(facts).ok()?;
        let exports = facts.exports.into_iter().map(|(name, kind)| {
            let kind = EXPORT_KINDS.into_iter().find(|known| *known == kind)?;
            Some(Export { name, kind })
        });
        let exports = exports.collect::<Option<Vec<_>>>()?;
        (facts.version == VERSION).then_some(Self {
            imports: facts.imports,
            exports,
            modules: facts.modules,
            components: facts.components,
            core_instances: facts.core_instances,
            instance_bytes: facts.instance_bytes,
            size: facts.size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::HANDLER;
    use super::*;

    #[test]
    fn the_facts_are_the_whole_surface() {
        let text = r#"(component
            (import "wasi:http/types@0.2.3" (instance))
            (core module $m (memory 1))
            (core instance (instantiate $m))
            (component)
            (instance $handler)
            (export "toolward:driver/handler@0.1.0" (instance $handler))
        )"#;
        let wasm = wat::parse_str(text).unwrap();
        let facts = Surface::facts(&wasm).unwrap();
        let surface = Surface::read(&wasm).unwrap();
        assert_eq!((surface.imports.len(), surface.exports.len()), (1, 1));
        assert_eq!(Surface::from_facts(&facts), Some(surface));
    }

    #[test]
    fn facts_of_another_version_or_kind_are_not_read() {
        assert_eq!(Surface::facts(b"no component"), None);
        let without = wat::parse_str("(component (type $t u8) (export \"t\" (type $t)))").unwrap();
        assert_eq!(Surface::facts(&without), None);
        let text = format!("(component (instance $i) (export \"{HANDLER}\" (instance $i)))");
        let wasm = wat::parse_str(text).unwrap();
        let facts = String::from_utf8(Surface::facts(&wasm).unwrap()).unwrap();
        for (good, bad) in [
            ("\"version\":1", "\"version\":2"),
            ("\"instance\"", "\"other\""),
            ("\"size\"", "\"sizes\""),
            ("}", ""),
        ] {
            assert!(facts.contains(good));
            assert_eq!(
                Surface::from_facts(facts.replace(good, bad).as_bytes()),
                None
            );
        }
    }
}
