//! `policy`: what the operator grants, looked at from the tools' side, and a policy file for itself. Only `grant`
//! changes a file.

pub(super) mod list;
mod suggest;

use toolward_operator::config::{ConfigFile, default_config};
use toolward_operator::doctor::{policy_warnings, unused_rule_warnings};
use toolward_operator::host_setup;
use toolward_operator::policy_review::PolicyReview;

use crate::prelude::*;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List a bundle's tools: allowed, asking a person, or blocked; and its
    /// prompts and resources: served or hidden
    List(list::Arguments),
    /// Write the smallest policy that lets a bundle's tools run, and its prompts
    /// and resources be seen
    Suggest(suggest::Suggest),
    /// Add what `suggest` prints to the policy's file, after you have seen it and
    /// typed a yes
    Grant(suggest::GrantFlags),
    /// Check a policy file
    Check {
        /// The file [default: toolward.toml in the user's configuration directory]
        file: Option<PathBuf>,
    },
}

impl Command {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        match self {
            Self::List(arguments) => list::run(arguments, environment, output),
            Self::Suggest(arguments) => suggest::suggest(arguments, environment, output),
            Self::Grant(arguments) => suggest::grant(arguments, environment, output),
            Self::Check { file } => check(file.as_ref(), environment, output),
        }
    }
}

/// Bundles, and the policy that they are held to.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    #[command(flatten)]
    pub(super) source: Flagged<BundleSource>,

    #[command(flatten)]
    pub(super) policies: Flagged<PolicyFiles>,
}

impl Subject {
    pub(crate) fn review(
        &self,
        environment: &Environment,
        output: &Output,
    ) -> Result<PolicyReview> {
        PolicyReview::read(&self.source, &self.policies, environment, output)
    }

    /// The failure of a tool that is installed and left out, where the name is one's.
    pub(crate) fn withheld(
        &self,
        review: &PolicyReview,
        name: &str,
        environment: &Environment,
        output: &Output,
    ) -> Result<Option<Failure>> {
        let contents = review.bundles.iter().map(|(content, _)| content);
        self.source.withheld(name, contents, environment, output)
    }
}

/// Checks a policy file. Whether it is the right one for a bundle is what `policy list` and `show --policy` show.
fn check(file: Option<&PathBuf>, environment: &Environment, output: &mut Output) -> Result {
    let path = match file {
        Some(path) => path.clone(),
        None => default_config(environment).ok_or_else(|| {
            Failure::usage(Code::PolicyMissing, "there is no configuration directory")
                .hint("name the file to check")
        })?,
    };
    let file = ConfigFile::read(&path)?;
    // First the problems that have a place. The file was read, and it is what fails the check.
    let failed = |failure: Failure| failure.of_kind(Kind::Failed);
    let policy = file.policy().map_err(failed)?;
    let trust = file.trust_store().map_err(failed)?;
    host_setup::transport(&policy).map_err(failed)?;
    file.approving_clients().map_err(failed)?;
    file.ledger().map_err(failed)?;
    file.registries().map_err(failed)?;
    let mut warnings = policy_warnings(&policy, &trust);
    let source = BundleSource {
        trust: Trust::of_config(Some(path.clone())),
        ..BundleSource::default()
    };
    let none = PolicyFiles::default();
    warnings.extend(unused_rule_warnings(&source, &none, environment));
    let count = [
        ("grant", policy.grants().count()),
        ("deny rule", policy.denies().count()),
        ("workspace", policy.tables().workspaces.len()),
        ("secret", policy.tables().secrets.len()),
        ("service", policy.tables().services.len()),
        ("share", policy.tables().shares.len()),
        ("document rule", policy.tables().documents.len()),
    ];
    if output.json() {
        let counts = count.map(|(name, number)| (name.replace(' ', "_"), number.into()));
        return output.value(&json!({
            "ok": true,
            "file": path.display().to_string(),
            "counts": serde_json::Map::from_iter(counts),
            "warnings": warnings,
        }));
    }
    for warning in &warnings {
        output.warning(warning);
    }
    let found = count.iter().filter(|(_, number)| *number > 0);
    let found = found.map(|(name, number)| counted(*number, name));
    let found = match found.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "grants nothing".to_owned(),
        found => found,
    };
    let verdict = match warnings.is_empty() {
        true => "fine",
        false => "valid",
    };
    output.line(format!("{}: {verdict} ({found})", path.display()))
}
