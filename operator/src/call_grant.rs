//! What `call --grant` gives to one tool for one call: hosts and workspaces, on top of the policy. It is written as lines
//! of a policy and read by the policy's own reader, so that it can be nothing that a file could not say.

use std::net::IpAddr;
use std::path::Path;

use toolward_bundle::content::Content;
use toolward_contract::capability::{CapabilitySet, Class};
use toolward_contract::tool::Tool;
use toolward_policy::Policy;

use crate::config::Granted;
use crate::error::{Code, Error, Kind};
use crate::policy_review::is_named;

/// How errors and records name these lines.
const SOURCE: &str = "--grant";

/// One value of `--grant`.
enum CallGrant<'a> {
    Host(&'a str),
    Workspace { path: &'a str, directory: &'a str },
}

impl Granted {
    /// Adds what `--grant` gives to a tool of these bundles: `network:HOST`, or `workspace:/PATH=DIRECTORY`, relative to
    /// `folder`. It gives no secret, no tool, no `*`, no address and no plain http, and approves nothing: where the tool
    /// may change something, or call other tools, a person is asked whatever else the policy says. A `[[deny]]` wins.
    ///
    /// # Errors
    /// `grant-refused` for anything else; the codes of policies, such as that of a workspace that overlaps another one.
    pub fn add_for_call(
        &mut self,
        grants: &[String],
        tool: &str,
        contents: &[Content],
        folder: &Path,
    ) -> Result<(), Error> {
        let grants = grants.iter().map(|text| CallGrant::parse(text));
        let grants: Vec<CallGrant<'_>> = grants.collect::<Result<_, Error>>()?;
        let mut tables = toml::Table::new();
        let workspaces = grants.iter().filter_map(CallGrant::workspace);
        let workspaces: Vec<toml::Value> = workspaces.collect();
        let calls_tools = contents.iter().any(calls_tools);
        let mut rules = Vec::new();
        for content in contents {
            for entry in &content.tools {
                if is_named(&entry.tool, tool) {
                    rules.push(rule(
                        &entry.tool,
                        &content.origin.publisher(),
                        &grants,
                        calls_tools,
                    ));
                }
            }
        }
        tables.insert("workspace".to_owned(), workspaces.into());
        tables.insert("grant".to_owned(), rules.into());
        let text = tables.to_string();
        let failed = |error: &toolward_policy::PolicyError| {
            let message = format!("{SOURCE}: {}", error.message());
            Error::with_code(Kind::Usage, error.code(), message).maybe_hint(error.hint())
        };
        let more = Policy::from_toml_in(&text, SOURCE, folder).map_err(|error| failed(&error))?;
        self.layer(more, &text).map_err(|error| failed(&error))
    }
}

impl<'a> CallGrant<'a> {
    fn parse(text: &'a str) -> Result<Self, Error> {
        let refused = |what: &str| {
            let message = format!("{SOURCE} {text:?}: {what}");
            Error::usage(Code::GrantRefused, message).hint(
                "give network:HOST, or workspace:/PATH=DIRECTORY; all else stands in the policy's file",
            )
        };
        if let Some(rest) = text.strip_prefix("workspace:") {
            return match rest.split_once('=') {
                Some((path, _)) if path.contains('*') => {
                    Err(refused("a path with `*` is not given"))
                }
                Some((path, directory)) if path.starts_with('/') && !directory.is_empty() => {
                    Ok(Self::Workspace { path, directory })
                }
                _ => Err(refused("expected /PATH=DIRECTORY")),
            };
        }
        match text.strip_prefix("network:") {
            Some(host) if host.contains('*') => Err(refused("a host with `*` is not given")),
            Some(host) if is_address(host) => Err(refused("an address is not given")),
            Some(host) => Ok(Self::Host(host)),
            None => Err(refused("only hosts and workspaces are given for one call")),
        }
    }

    fn workspace(&self) -> Option<toml::Value> {
        let Self::Workspace { path, directory } = self else {
            return None;
        };
        let pairs = [("path", *path), ("directory", *directory)];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.into()));
        Some(toml::Value::Table(toml::Table::from_iter(pairs)))
    }

    fn capability(&self) -> String {
        match self {
            Self::Host(host) => format!("network:{host}"),
            Self::Workspace { path, .. } => format!("workspace:{path}"),
        }
    }
}

/// Whether a host is an address, in each form that one is read in: a last label of digits, or of `0x` with more, makes
/// it one (URL Standard, 3.5 "ends in a number").
fn is_address(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.bytes().all(|b| b.is_ascii_digit()) => {
            name
        }
        _ => host,
    };
    let last = name
        .trim_end_matches('.')
        .rsplit('.')
        .next()
        .unwrap_or_default();
    let last = last.to_ascii_lowercase();
    name.contains(['[', ':', '/', '@'])
        || name.parse::<IpAddr>().is_ok()
        || last.bytes().all(|byte| byte.is_ascii_digit())
        || last.starts_with("0x")
}

/// Whether a tool or a driver may call tools.
fn calls_tools(content: &Content) -> bool {
    let any = |set: &CapabilitySet| set.of_class(&Class::Tool).next().is_some();
    let (tools, drivers) = (&content.tools, &content.drivers);
    tools.iter().any(|entry| any(&entry.tool.declaration()))
        || drivers
            .iter()
            .any(|entry| any(&entry.driver.requires.capabilities))
}

/// The `[[grant]]` of one tool. Where it may change something, or call tools that do, its calls are asked about, also if
/// another rule says `preapproved`: what was mapped for this call is no part of what was approved there.
fn rule(tool: &Tool, publisher: &str, grants: &[CallGrant<'_>], calls_tools: bool) -> toml::Value {
    let all = grants.iter().map(|one| one.capability().into());
    let all: Vec<toml::Value> = all.collect();
    let acts = calls_tools || !tool.mutates.is_empty();
    let mut rule = toml::Table::new();
    let mut set = |key: &str, value: toml::Value| rule.insert(key.to_owned(), value);
    set("publisher", publisher.into());
    set("tool", tool.major_id().into());
    set("requires", all.clone().into());
    set("mutates", all.into());
    if acts {
        set("approval", "always".into());
    }
    toml::Value::Table(rule)
}
