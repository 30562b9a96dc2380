//! The operator's grants: the policies of the configuration and of `--policy-file` combined, and
//! the grants that `call --grant` adds to one tool for one call.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use toolward_bundle::content::Content;
use toolward_contract::capability::{CapabilitySet, Class};
use toolward_contract::tool::Tool;
use toolward_host::secrets;
use toolward_policy::{ContextSource, Policy, PolicyError};
use toolward_signing::Digest;

use crate::bundles::{declares, is_named};
use crate::config::{CONFIG_FILE, ConfigFile, default_config};
use crate::settings;
use crate::trust::Trust;
use crate::{Code, Environment, Error, Kind, Result};

/// The name of the grants of `--grant` in errors and records.
const SOURCE: &str = "--grant";

/// Policy files in addition to the configured policy. A denial in any file counts.
#[derive(Debug, Default, Clone)]
pub struct PolicyFiles(pub Vec<PathBuf>);

/// The grants of the operator from all files.
#[derive(Debug)]
pub struct Granted {
    /// The policies of all files, combined.
    pub policy: Policy,
    /// The files that the policy was read from.
    pub files: Vec<PathBuf>,
    /// The file to which suggested lines are added.
    pub place: PathBuf,
    /// The texts of the files, each after its length.
    texts: Vec<u8>,
}

impl Granted {
    /// Reads all policies: the configured policy first, then the policies from flags.
    pub fn read(trust: &Trust, policies: &PolicyFiles, environment: &Environment) -> Result<Self> {
        let configured = trust.file(environment)?;
        let mut granted = Self {
            policy: Policy::empty(),
            files: Vec::new(),
            place: default_config(environment).unwrap_or_else(|| CONFIG_FILE.into()),
            texts: Vec::new(),
        };
        if let Some(file) = configured {
            granted.add(file)?;
            // Reports an invalid value before other work starts.
            file.check_settings()?;
        }
        for path in &policies.0 {
            let file = ConfigFile::read(path)?;
            granted.add(&file)?;
            settings::refuse_in_policy(&file.text, path)?;
        }
        // The values of `[[context]]` are read once: later changes of them apply to the next
        // process.
        let variable = environment.variable;
        let mut value = |source: &ContextSource| context_value(source, variable);
        granted.policy = granted.policy.with_contexts(&mut value);
        Ok(granted)
    }

    fn add(&mut self, file: &ConfigFile) -> Result<()> {
        let earlier = std::mem::take(&mut self.policy);
        // If two files declare an item that only one may declare, the error is in the later file.
        let joined = earlier.layer(file.policy()?);
        self.policy = joined.map_err(|error| file.broken(&error))?;
        file.path.clone_into(&mut self.place);
        self.files.push(self.place.clone());
        self.count(&file.text);
        Ok(())
    }

    /// Adds a policy that is in no file. Its text counts for the digest like the text of a file.
    pub(crate) fn layer(&mut self, more: Policy, text: &str) -> Result<(), PolicyError> {
        let earlier = std::mem::take(&mut self.policy);
        self.policy = earlier.layer(more)?;
        self.count(text);
        Ok(())
    }

    fn count(&mut self, text: &str) {
        let length = text.len() as u64;
        self.texts.extend_from_slice(&length.to_le_bytes());
        self.texts.extend_from_slice(text.as_bytes());
    }

    /// The digest by which records name this policy: BLAKE3 of the texts of its files in order,
    /// each after its length in bytes (64 bits, little-endian).
    pub fn policy_digest(&self) -> [u8; 32] {
        *Digest::of(&self.texts).as_bytes()
    }

    /// Adds the grants of `--grant` to a tool of these bundles: `network:HOST`, or
    /// `workspace:/PATH=DIRECTORY` with DIRECTORY relative to `folder`. Such a grant can't be for a
    /// secret, a tool, `*`, an address or plain http, and it approves no call. If the tool may
    /// change something, or if any of these bundles may call tools, a person is asked regardless of
    /// the policy. A `[[deny]]` takes precedence.
    ///
    /// # Errors
    /// `grant-refused` for any other grant; the codes of policies, for example for overlapping
    /// workspaces.
    pub fn add_for_call(
        &mut self,
        grants: &[String],
        tool: &str,
        contents: &[Content],
        folder: &Path,
    ) -> Result<()> {
        let grants = grants.iter().map(|text| call_grant(text));
        let grants: Vec<CallGrant> = grants.collect::<Result<_>>()?;
        let mut tables = toml::Table::new();
        let workspaces = grants.iter().filter_map(|(_, workspace)| workspace.clone());
        let workspaces: Vec<toml::Table> = workspaces.collect();
        let calls = |set: &CapabilitySet| set.of_class(&Class::Tool).next().is_some();
        let calls_tools = contents.iter().any(|content| declares(content, calls));
        let mut rules = Vec::new();
        for content in contents {
            let publisher = content.origin.publisher();
            let tools = content.tools.iter().map(|entry| &entry.tool);
            let named = tools.filter(|one| is_named(one, tool));
            rules.extend(named.map(|tool| rule(tool, &publisher, &grants, calls_tools)));
        }
        tables.insert("workspace".to_owned(), workspaces.into());
        tables.insert("grant".to_owned(), rules.into());
        let text = tables.to_string();
        let failed = |error: &PolicyError| {
            let message = format!("{SOURCE}: {}", error.message());
            Error::with_code(Kind::Usage, error.code(), message).maybe_hint(error.hint())
        };
        let more = Policy::from_toml_in(&text, SOURCE, folder).map_err(|error| failed(&error))?;
        self.layer(more, &text).map_err(|error| failed(&error))
    }
}

/// Reads a value of `[[context]]` in the same way as a secret.
fn context_value(
    source: &ContextSource,
    variable: fn(&str) -> Option<String>,
) -> Result<String, String> {
    let bytes = match source {
        ContextSource::Env(name) => {
            let value = variable(name);
            return value.ok_or_else(|| format!("the environment variable {name} is not set"));
        }
        ContextSource::File(path) => secrets::read_file(Path::new(path))
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("{path}: there is no such file"))?,
        ContextSource::Written(_) => return Err("it is written in the policy".to_owned()),
    };
    String::from_utf8(bytes.bytes().to_vec()).map_err(|_| "it is not UTF-8".to_owned())
}

/// One value of `--grant`: a capability, and its `[[workspace]]` if it has one.
type CallGrant = (String, Option<toml::Table>);

fn call_grant(text: &str) -> Result<CallGrant> {
    let refused = |what: &str| {
        let message = format!("{SOURCE} {text:?}: {what}");
        Error::usage(Code::GrantRefused, message).hint(
            "give network:HOST, or workspace:/PATH=DIRECTORY; all else stands in the policy's file",
        )
    };
    if let Some(rest) = text.strip_prefix("workspace:") {
        return match rest.split_once('=') {
            Some((path, _)) if path.contains('*') => Err(refused("a path with `*` is not given")),
            Some((path, directory)) if path.starts_with('/') && !directory.is_empty() => {
                let pairs = [("path", path), ("directory", directory)];
                let pairs = pairs.map(|(key, value)| (key.to_owned(), value.into()));
                let workspace = toml::Table::from_iter(pairs);
                Ok((format!("workspace:{path}"), Some(workspace)))
            }
            _ => Err(refused("expected /PATH=DIRECTORY")),
        };
    }
    match text.strip_prefix("network:") {
        Some(host) if host.contains('*') => Err(refused("a host with `*` is not given")),
        Some(host) if is_address(host) => Err(refused("an address is not given")),
        Some(_) => Ok((text.to_owned(), None)),
        None => Err(refused("only hosts and workspaces are given for one call")),
    }
}

/// Whether a host is an IP address in any form that parsers accept. A name counts as an address if
/// its last label consists of digits or starts with `0x` (URL Standard, 3.5 "ends in a number").
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

/// Returns the `[[grant]]` of one tool. If the tool may change something, or if any tool may call
/// tools, a person is asked before calls of this tool. That holds even if another rule has
/// `preapproved`, since the approval of that rule does not cover the grants of this call.
fn rule(tool: &Tool, publisher: &str, grants: &[CallGrant], calls_tools: bool) -> toml::Value {
    let all = grants
        .iter()
        .map(|(capability, _)| capability.clone().into());
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
