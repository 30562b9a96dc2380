//! TOOL.md, DRIVER.md, ACTION.md, prompts, sidecars, tools.json and components.

use toolward_bundle::Surface;
use toolward_contract::action::Action;
use toolward_contract::capability::Class;
use toolward_contract::driver::Driver;
use toolward_contract::index::Index;
use toolward_contract::json::Limits;
use toolward_contract::prompt::{Part, Prompt};
use toolward_contract::resource::Resource;
use toolward_contract::tool::{Approval, Tool};
use toolward_contract::{Diagnostic, NoScope, Parsed, codes};

use crate::requests;

/// Front matter as a contract, a driver, an action, a prompt and a sidecar.
pub fn front_matter(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let tool = sound(Tool::parse("TOOL.md", text, &NoScope), data);
    let driver = sound(Driver::parse("DRIVER.md", text), data);
    let action = sound(Action::parse("ACTION.md", text), data);
    if let Some(tool) = &tool {
        contract(tool);
    }
    if let Some(driver) = &driver {
        assert!(!driver.implements.is_empty());
        for entry in &driver.implements {
            if let Some(call) = &entry.http {
                requests::hostile(driver, call);
            }
        }
    }
    let prompt = sound(Prompt::parse("prompts/p.md", text), data);
    let resource = sound(Resource::parse("resources/r.resource.md", text), data);
    if let Some(prompt) = &prompt {
        filled_in(prompt);
    }
    if let Some(template) = resource
        .as_ref()
        .and_then(|found| found.uri_template.as_ref())
    {
        let uri: String = template.as_str().replace(['{', '}'], "");
        // A variable's own name is a value: what a template gives fits it.
        assert!(template.values(&uri).is_some(), "{template}");
    }
    tool.is_some() || driver.is_some() || action.is_some() || prompt.is_some() || resource.is_some()
}

/// Every placeholder is an argument, and nothing else is left out or put in.
fn filled_in(prompt: &Prompt) {
    assert!(!prompt.messages.is_empty());
    let known = |name: &str| prompt.arguments.iter().any(|one| one.name == name);
    for message in &prompt.messages {
        match &message.part {
            Part::Text(text) => assert!(text.places().all(|(name, _)| known(name))),
            Part::Chosen { argument, .. } => assert!(known(argument)),
            Part::File { path, .. } | Part::Media { path, .. } => {
                assert!(path.starts_with("resources/"));
            }
            _ => {}
        }
    }
}

/// A document is refused exactly with an error, and every finding has a code and a place in it.
fn sound<T>(parsed: Parsed<T>, data: &[u8]) -> Option<T> {
    let refused = parsed.diagnostics.iter().any(Diagnostic::is_error);
    assert_eq!(
        parsed.value.is_none(),
        refused,
        "a value comes exactly without errors"
    );
    let lines = data
        .iter()
        .filter(|byte| **byte == b'\n' || **byte == b'\r')
        .count();
    for found in &parsed.diagnostics {
        assert!(codes().any(|info| info.code == found.code), "{found}");
        let line = usize::try_from(found.line).expect("a line");
        assert!(
            (1..=lines + 2).contains(&line) && found.column >= 1,
            "{found}"
        );
    }
    parsed.value
}

/// What the later stages rely on, and that tools.json says of it what it says.
fn contract(tool: &Tool) {
    assert!(tool.approval != Approval::Auto || tool.mutates.is_empty());
    assert!(tool.risk_level <= 3 && !tool.timeout.is_zero());
    assert!(tool.declaration().covers(&tool.mutates));
    let source = format!(
        "---\nname: Driver\nid: a-driver\ndescription: Any.\nversion: 1.0.0\nkind: component\ncomponent: driver.wasm\nimplements:\n  - {{ tool: {}, version: \"{}\" }}\n---\n",
        tool.id, tool.version
    );
    let Some(driver) = Driver::parse("DRIVER.md", &source).value else {
        return;
    };
    let drivers = [&driver];
    let tools = [(tool, &drivers[..])];
    let bytes = Index::generate(&tools).to_bytes();
    if bytes.len() <= Limits::default().bytes {
        let index = Index::parse("tools.json", &bytes, &NoScope)
            .into_result()
            .unwrap_or_else(|found| panic!("what is written can be read: {found:?}"));
        assert_eq!(index.to_bytes(), bytes);
        assert_eq!(index.agrees("tools.json", &tools), Ok(()));
    }
}

/// An index is written and read back as it was; its transports go where it declares, or nowhere.
pub fn tools_json(data: &[u8]) -> bool {
    let Some(index) = sound(Index::parse("tools.json", data, &NoScope), data) else {
        return false;
    };
    let bytes = index.to_bytes();
    if bytes.len() <= Limits::default().bytes {
        let again = Index::parse("tools.json", &bytes, &NoScope)
            .into_result()
            .unwrap_or_else(|found| panic!("what is written can be read: {found:?}"));
        assert_eq!(again.to_bytes(), bytes);
    }
    for (entry, contract) in index.tools.iter().zip(index.contracts()) {
        let Some(Ok(driver)) = entry.driver(&contract, "tools.json") else {
            continue;
        };
        if driver.implements.iter().any(|one| one.program.is_some()) {
            assert!(driver.origin().is_none());
            continue;
        }
        let origin = driver.origin().expect("a declarative driver has an origin");
        let declared = contract.declaration().iter().any(|capability| {
            *capability.class() == Class::External
                || capability.host().is_some_and(|host| {
                    host.matches(&origin.host(), origin.port().unwrap_or(443), true)
                })
        });
        assert!(declared, "{origin} is declared by nobody");
        for call in driver
            .implements
            .iter()
            .filter_map(|entry| entry.http.as_ref())
        {
            assert!(call.method.is_safe() || !contract.mutates.is_empty());
            for slug in call.secrets() {
                assert!(entry.secrets.iter().any(|own| own == slug), "{slug}");
            }
            requests::hostile(&driver, call);
        }
    }
    true
}

/// A component's outside is read within bounds, whatever is inside.
pub fn component(data: &[u8]) -> bool {
    use toolward_bundle::component::{MAX_NAME, MAX_NAMES, MAX_NESTED};

    let Ok(surface) = Surface::read(data) else {
        return false;
    };
    assert_eq!(u64::try_from(data.len()), Ok(surface.size));
    assert!(surface.modules + surface.components <= MAX_NESTED);
    assert!(surface.imports.len() <= MAX_NAMES && surface.exports.len() <= MAX_NAMES);
    let names = surface.exports.iter().map(|export| &export.name);
    assert!(
        names
            .chain(&surface.imports)
            .all(|name| name.len() <= MAX_NAME)
    );
    assert!(!surface.exports_handler() || surface.handler_version().is_some());
    true
}
