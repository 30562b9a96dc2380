//! Finds the world of a component from its exports.

use toolward_contract::driver::ForeignWorld;

use super::{Functions, HANDLER, Surface, SurfaceError, validate};
use crate::text::list;

/// What a component is and for which host, judged by its exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeFor {
    /// A driver of this host.
    Toolward,
    /// A driver for another version of the world.
    OtherToolward,
    /// A component for the host of a registered world.
    Foreign(&'static ForeignWorld),
    /// A provider of tools for ACT.
    Act,
    /// A command-line program.
    Command,
    /// A server of HTTP requests.
    HttpServer,
    /// Functions outside any interface, as components for the host Wassette have.
    Functions,
    /// Something else.
    Other,
}

/// The prefixes of the exports of other hosts' components, in the order in which they are checked.
const EXPORTS: &[(&str, MadeFor)] = &[
    ("act:tools/", MadeFor::Act),
    ("wasi:http/incoming-handler@", MadeFor::HttpServer),
    ("wasi:cli/run@", MadeFor::Command),
];

impl MadeFor {
    /// Judges the exports of a component.
    pub fn of(surface: &Surface) -> Self {
        if surface.exports_handler() {
            return Self::Toolward;
        }
        if surface.handler_version().is_some() {
            return Self::OtherToolward;
        }
        let foreign = ForeignWorld::registered().into_iter();
        let foreign = foreign.map(|world| (world.interfaces, Self::Foreign(world)));
        for (beginning, made_for) in foreign.chain(EXPORTS.iter().copied()) {
            if surface.instances().any(|name| name.starts_with(beginning)) {
                return made_for;
            }
        }
        match surface.exports.iter().any(|export| export.kind == "func") {
            true => Self::Functions,
            false => Self::Other,
        }
    }

    /// The name in JSON.
    pub fn word(self) -> &'static str {
        self.texts().0
    }

    /// The description for people.
    pub fn description(self) -> &'static str {
        self.texts().1
    }

    /// The name in JSON, and the description for people.
    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Toolward => ("toolward", "a driver"),
            Self::OtherToolward => (
                "toolward-other-version",
                "a driver for another version of Toolward",
            ),
            Self::Foreign(world) => (world.word, world.component),
            Self::Act => ("act", "a provider of tools for ACT"),
            Self::Command => ("wasi-cli", "a command-line program"),
            Self::HttpServer => ("wasi-http", "a server of HTTP requests"),
            Self::Functions => (
                "functions",
                "a component with functions of its own, as Wassette calls them",
            ),
            Self::Other => ("other", "a component of another world"),
        }
    }
}

/// How a host can use a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Usability {
    /// As a driver, unchanged.
    Driver,
    /// As a driver whose DRIVER.md specifies the call. Has the word for `toolward import WORD`,
    /// which writes that DRIVER.md.
    Import(&'static str),
    /// Not usable, for this reason, in words.
    Unusable(String),
}

impl Usability {
    /// The usability of a component with this surface.
    pub fn of(wasm: &[u8], surface: &Surface) -> Self {
        let usable = match MadeFor::of(surface) {
            MadeFor::Toolward => Self::Driver,
            MadeFor::Foreign(world) => {
                let functions = Functions::read(wasm, &surface.exports).unwrap_or_default();
                let offers = |name: &&str| functions.offered.contains_key(*name);
                if !world.functions.iter().all(offers) {
                    return Self::Unusable(world.unusable.to_owned());
                }
                Self::Import(world.word)
            }
            MadeFor::Command | MadeFor::HttpServer | MadeFor::OtherToolward => {
                return Self::Unusable(format!("a driver exports {HANDLER}"));
            }
            _ => match Functions::read(wasm, &surface.exports) {
                Err(invalid) => return Self::Unusable(not_run(&invalid)),
                Ok(functions) if functions.offered.is_empty() => {
                    return Self::Unusable(none_offered(&functions));
                }
                Ok(_) => Self::Import("component"),
            },
        };
        let unknown = surface.unknown_imports();
        if !unknown.is_empty() {
            return Self::Unusable(format!("no host provides {}", list(&unknown)));
        }
        match validate(wasm) {
            Ok(()) => usable,
            Err(invalid) => Self::Unusable(not_run(&invalid)),
        }
    }
}

fn not_run(invalid: &SurfaceError) -> String {
    match invalid {
        SurfaceError::Async => invalid.to_string(),
        invalid => format!("this host does not run it: {invalid}"),
    }
}

/// The reason why no function of a component can be called.
fn none_offered(functions: &Functions) -> String {
    match functions.withheld.first_key_value() {
        Some((name, reason)) => format!("none of its functions can be called; {name}: {reason}"),
        None => "it exports no function that can be called".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(exports: &str) -> (MadeFor, Usability) {
        let wasm = wat::parse_str(format!("(component {exports})")).unwrap();
        let surface = Surface::read(&wasm).unwrap();
        (MadeFor::of(&surface), Usability::of(&wasm, &surface))
    }

    /// A core module with a function, which the component exports.
    const FUNCTION: &str = r#"
        (core module $m (func (export "f")))
        (core instance $c (instantiate $m))
        (func $f (canon lift (core func $c "f")))"#;

    #[test]
    fn exports_tell_whose_a_component_is() {
        let instance = |name: &str| format!("(instance $i) (export \"{name}\" (instance $i))");
        for (exports, expected) in [
            (instance(HANDLER), MadeFor::Toolward),
            (
                instance("toolward:driver/handler@9.0.0"),
                MadeFor::OtherToolward,
            ),
            (
                instance("toolward:driver/handler@0.1.0-next"),
                MadeFor::OtherToolward,
            ),
            (instance("act:tools/tool-provider@0.1.0"), MadeFor::Act),
            (
                instance("wasi:http/incoming-handler@0.2.0"),
                MadeFor::HttpServer,
            ),
            (instance("wasi:cli/run@0.2.0"), MadeFor::Command),
            (instance("a:b/c"), MadeFor::Other),
            (
                format!("{FUNCTION} (export \"f\" (func $f))"),
                MadeFor::Functions,
            ),
            (String::new(), MadeFor::Other),
        ] {
            let (made_for, usability) = found(&exports);
            assert_eq!(made_for, expected, "{exports}");
            let expected = match expected {
                MadeFor::Toolward => Some(Usability::Driver),
                MadeFor::Functions => Some(Usability::Import("component")),
                _ => None,
            };
            match expected {
                Some(expected) => assert_eq!(usability, expected, "{exports}"),
                None => assert!(matches!(usability, Usability::Unusable(_)), "{exports}"),
            }
        }
    }

    #[test]
    fn a_program_is_no_tool_though_its_function_could_be_called() {
        for name in ["wasi:cli/run@0.2.0", "toolward:driver/handler@9.0.0"] {
            let (_, usability) = found(&format!(
                "{FUNCTION} (instance $i (export \"run\" (func $f))) (export \"{name}\" (instance $i))"
            ));
            assert!(
                matches!(usability, Usability::Unusable(_)),
                "{name}: {usability:?}"
            );
        }
    }

    #[test]
    fn a_driver_that_takes_what_no_host_has_can_not_be_used() {
        let handler = format!("(instance $i) (export \"{HANDLER}\" (instance $i))");
        let import = format!("(import \"wasi:gfx/surface@0.2.0\" (instance)) {handler}");
        let (made_for, usability) = found(&import);
        assert_eq!(made_for, MadeFor::Toolward);
        let why = format!("{usability:?}");
        assert!(
            why.contains("no host provides wasi:gfx/surface@0.2.0"),
            "{why}"
        );
    }
}
