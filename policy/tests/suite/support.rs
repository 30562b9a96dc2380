//! Short constructors for contracts, drivers and policies.

use toolward_contract::NoScope;
use toolward_contract::capability::Class;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{
    Allowed, AskReason, Choices, Contract, Decision, DecisionContext, Denial, Effects, Grant,
    Implementation, Machine, Policy, decide, routes, suggest,
};

/// A contract `notes.append` 1.2.0 with these additional lines in its front matter.
pub(crate) fn tool(lines: &str) -> Tool {
    named_tool("notes.append", lines)
}

pub(crate) fn named_tool(id: &str, lines: &str) -> Tool {
    let source = format!(
        "---\nid: {id}\nname: A tool\ndescription: Does something.\nversion: 1.2.0\n\
         inputs: {{ type: object }}\noutputs: {{ type: object }}\n{lines}\n---\n"
    );
    Tool::parse("TOOL.md", &source, &NoScope)
        .into_result()
        .unwrap_or_else(|found| panic!("{source}\n{found:?}"))
}

/// A driver `acme.notes` of three tools, with these additional lines in its front matter.
pub(crate) fn driver(lines: &str) -> Driver {
    let implements: String = ["notes.append", "notes.read", "text.other"]
        .map(|tool| format!("  - {{ tool: {tool}, version: \"^1.0.0\" }}\n"))
        .concat();
    let source = format!(
        "---\nid: acme.notes\nname: A driver\ndescription: Does it.\nversion: 1.0.0\n\
         kind: component\ncomponent: driver.wasm\n\
         implements:\n{implements}{lines}\n---\n"
    );
    Driver::parse("DRIVER.md", &source)
        .into_result()
        .unwrap_or_else(|found| panic!("{source}\n{found:?}"))
}

/// A declarative driver `acme.notes` of notes.append, whose request has these additional members.
pub(crate) fn http_driver(request: &str) -> Driver {
    let source = format!(
        "---\nid: acme.notes\nname: A driver\ndescription: Does it.\nversion: 1.0.0\nkind: http\n\
         base_url: https://api.example\nnetwork: {{ egress: [api.example] }}\n\
         implements:\n  - {{ tool: notes.append, version: \"^1.0.0\", metadata: {{ http: {{ {request} }} }} }}\n---\n"
    );
    Driver::parse("DRIVER.md", &source)
        .into_result()
        .unwrap_or_else(|found| panic!("{source}\n{found:?}"))
}

/// A machine on which every driver runs.
pub(crate) fn machine() -> Machine {
    Machine::new("linux", "x86_64", 64 << 20)
}

/// The suggested lines for tools of acme and a driver of `publisher`.
pub(crate) fn suggested_for(
    policy: &Policy,
    tools: &[Tool],
    (driver, publisher): (&Driver, &str),
    named: Option<&str>,
) -> String {
    let tools: Vec<Contract<'_>> = tools
        .iter()
        .map(|tool| Contract {
            tool,
            publisher: "acme",
        })
        .collect();
    let drivers = [Implementation { driver, publisher }];
    let machine = machine();
    let routes = routes(&tools, &drivers, policy, &machine).expect("different ids");
    suggest(&routes, named, false, policy, &machine, &Choices::default()).lines
}

/// Egress to everywhere.
pub(crate) const EVERYWHERE: &str = "network: { egress: ['*', '*:8080'] }";

pub(crate) fn policy(text: &str) -> Policy {
    Policy::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The decision of a policy about a tool and a driver of acme.
pub(crate) fn ask(policy: &Policy, tool: &Tool, driver: &Driver) -> Decision {
    ask_of(policy, (tool, "acme"), (driver, "acme"))
}

pub(crate) fn ask_of(
    policy: &Policy,
    (tool, publisher): (&Tool, &str),
    (driver, driver_publisher): (&Driver, &str),
) -> Decision {
    decide(
        &Contract { tool, publisher },
        &Implementation {
            driver,
            publisher: driver_publisher,
        },
        policy,
        &DecisionContext::default(),
    )
}

/// The decision of a policy about a tool that reaches others.
pub(crate) fn ask_reaching(
    policy: &Policy,
    tool: &Tool,
    driver: &Driver,
    reachable: Effects,
) -> Decision {
    let publisher = "acme";
    decide(
        &Contract { tool, publisher },
        &Implementation { driver, publisher },
        policy,
        &DecisionContext {
            reachable,
            machine: None,
        },
    )
}

pub(crate) fn allowed(decision: &Decision) -> &Allowed {
    match decision {
        Decision::Allow(allowed) | Decision::Ask(allowed, _) => allowed,
        Decision::Deny(denial) => panic!("{denial}"),
    }
}

pub(crate) fn denial(decision: &Decision) -> &Denial {
    match decision {
        Decision::Deny(denial) => denial,
        other => panic!("expected a denial, found {other:?}"),
    }
}

pub(crate) fn reasons(decision: &Decision) -> &[AskReason] {
    match decision {
        Decision::Ask(_, reasons) => reasons,
        other => panic!("expected a question, found {other:?}"),
    }
}

/// Everything that a grant holds, in words.
pub(crate) fn words(grant: &Grant) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    words.extend(grant.network().iter().map(ToString::to_string));
    words.extend(grant.workspaces().iter().map(ToString::to_string));
    words.extend(grant.buckets().iter().map(ToString::to_string));
    words.extend(grant.secrets().iter().map(ToString::to_string));
    words.extend(grant.tools().iter().map(|id| format!("tool {id}")));
    let user = grant.scopes(&Class::User).iter();
    words.extend(user.map(|kind| format!("user {kind}")));
    words
}

/// The grants of a decision, in words.
pub(crate) fn granted(decision: &Decision) -> Vec<String> {
    words(&allowed(decision).grant)
}

/// The missing grants with their reasons, in words.
pub(crate) fn missing(decision: &Decision) -> Vec<String> {
    denial(decision)
        .missing
        .iter()
        .map(ToString::to_string)
        .collect()
}
