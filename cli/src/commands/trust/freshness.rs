//! The freshness rule of a publisher: what shows that a release of it that comes
//! over the network is current.

use clap::Args;
use toolward_signing::trust::{TrustSettings, max_age};

use crate::environment::has_terminal;
use crate::failure::{Code, Failure, OperatorCode, Result};
use crate::output::Output;
use toolward_operator::trust::publishers::FreshnessRule;

/// The maximum age that is offered, in days.
const DEFAULT_MAX_AGE_DAYS: u64 = 90;

/// The rule, as flags give it.
#[derive(Debug, Args)]
pub(crate) struct FreshnessFlags {
    /// Refuse releases of this publisher that are older
    #[arg(long, value_name = "DAYS", conflicts_with = "channel")]
    pub(super) max_age_days: Option<u64>,

    /// Hold releases of this publisher that come over the network to this
    /// `[[channel]]` of toolward.toml
    #[arg(long, value_name = "NAME")]
    pub(super) channel: Option<String>,
}

impl FreshnessFlags {
    /// The rule that was given, if one was.
    pub(super) fn given(&self, settings: &TrustSettings) -> Result<Option<FreshnessRule>> {
        let rule = FreshnessRule {
            max_age_days: self.max_age_days,
            channel: self.channel.clone(),
        };
        if rule.is_empty() {
            return Ok(None);
        }
        checked(rule, settings).map(Some)
    }

    /// The rule that was given, or what a person on the terminal says. Nobody is
    /// asked where `[trust]` or a channel of the configuration counts anyway.
    pub(super) fn given_or_asked(
        &self,
        name: &str,
        settings: &TrustSettings,
        output: &Output,
    ) -> Result<FreshnessRule> {
        if let Some(rule) = self.given(settings)? {
            return Ok(rule);
        }
        if settings.max_age.is_some() || !settings.channels.is_empty() {
            return Ok(FreshnessRule::default());
        }
        if has_terminal() {
            return asked(name);
        }
        output.say(format!(
            "releases of {name} that come over the network are refused until a maximum age is set: \
             toolward trust update {name} --max-age-days {DEFAULT_MAX_AGE_DAYS}"
        ));
        Ok(FreshnessRule::default())
    }
}

/// Asks how old releases may be.
fn asked(name: &str) -> Result<FreshnessRule> {
    let days = dialoguer::Input::<u64>::new()
        .with_prompt(format!(
            "How many days old may a release of {name} be that comes over the network?"
        ))
        .default(DEFAULT_MAX_AGE_DAYS)
        .validate_with(|days: &u64| {
            max_age(*days)
                .map(drop)
                .map_err(|refusal| refusal.to_string())
        })
        .interact_text();
    let days = days.map_err(|error| {
        Failure::usage(
            Code::FreshnessUnanswered,
            format!("nobody said how old a release may be: {error}"),
        )
        .hint("give it with --max-age-days DAYS, or name a channel with --channel NAME")
    })?;
    Ok(FreshnessRule {
        max_age_days: Some(days),
        channel: None,
    })
}

fn checked(rule: FreshnessRule, settings: &TrustSettings) -> Result<FreshnessRule> {
    rule.max_age()
        .map_err(|failure| failure.hint("give --max-age-days a number of days, such as 90"))?;
    match &rule.channel {
        Some(name) if settings.channel(name).is_none() => Err(Failure::usage(
            OperatorCode::ChannelUnknown,
            format!("no channel {name} is configured"),
        )
        .hint("add a `[[channel]]` to toolward.toml")),
        _ => Ok(rule),
    }
}
