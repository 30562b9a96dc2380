//! `policy`: what the operator grants, looked at from the tools' side. Only `grant`
//! changes a file.

mod check;
mod choices;
pub(super) mod documents;
mod list;
mod suggest;

use clap::{Args, Subcommand};
use toolward_operator::bundles::BundleSource;
use toolward_operator::granted::PolicyFiles;
use toolward_operator::policy_review::PolicyReview;

use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::flags::Flagged;
use crate::output::Output;

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
    Grant(suggest::Grant),
    /// Check a policy file
    Check(check::Arguments),
}

impl Command {
    pub(crate) fn run(&self, environment: &Environment, output: &mut Output) -> Result {
        match self {
            Self::List(arguments) => list::run(arguments, environment, output),
            Self::Suggest(arguments) => suggest::suggest(arguments, environment, output),
            Self::Grant(arguments) => suggest::grant(arguments, environment, output),
            Self::Check(arguments) => check::run(arguments, environment, output),
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
