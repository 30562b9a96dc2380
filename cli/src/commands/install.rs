//! `install`, `update`, `list`, `remove`, `search`: the bundles of this machine.

mod list;
mod search;
mod update;

use clap::Args;
use serde_json::json;
use toolward_bundle::surface::Difference;
use toolward_bundle::text::visible_line;
use toolward_registry::Source;
use toolward_signing::Digest;
use toolward_store::{Held, InstallOptions, Outcome, Store};

use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind};
use crate::flags::Flagged;
use crate::output::Output;
use toolward_operator::installed::StoreLocation;
use toolward_operator::network::Network;
use toolward_operator::releases::{Current, Place};
use toolward_operator::trust::Trust;
use toolward_operator::trust::TrustContext;

pub(crate) use list::{List, Remove};
pub(crate) use search::Search;
pub(crate) use update::Update;

/// What installing and updating have in common.
#[derive(Debug, Args)]
pub(crate) struct CommonFlags {
    /// The channel whose index says which release is current [default: the only
    /// one that is configured]
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    /// Accept the surface with this digest, as it was shown when it was held
    #[arg(long, value_name = "DIGEST")]
    accept: Option<String>,

    /// Allow an older release than one that was installed, and say why
    #[arg(long, value_name = "WHY")]
    allow_rollback: Option<String>,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,

    #[command(flatten)]
    network: Flagged<Network>,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// A bundle: a file, a directory, an https address, or oci://…
    source: String,

    #[command(flatten)]
    common: CommonFlags,
}

impl Install {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let common = &self.common;
        let context = common.trust.context(environment, output)?;
        let store = common.store.open(environment)?;
        let place = Place::parse(&self.source)?;
        common.install(&place, None, &store, &context, environment, output)
    }
}

impl CommonFlags {
    fn accepted(&self) -> Result<Option<Digest>, Failure> {
        let digest = self.accept.as_deref().map(str::parse).transpose();
        digest
            .map_err(|refusal: toolward_signing::Refusal| Failure::usage(refusal.code(), &refusal))
    }

    /// What a source is held to now, for bundles of this publisher.
    fn current<'a>(
        &self,
        source: &Source,
        publisher: &str,
        store: &Store,
        context: &'a TrustContext,
        output: &Output,
    ) -> Result<Current<'a>, Failure> {
        let channel = self.channel.as_deref();
        let network = &self.network;
        Current::of(source, publisher, channel, network, store, context, output)
    }

    /// Installs what a place has, which must be the bundle that is expected.
    fn install(
        &self,
        place: &Place,
        expected: Option<&str>,
        store: &Store,
        context: &TrustContext,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let source = &place.source;
        let bundle = self
            .network
            .bundle(source, expected, context, environment, output)?;
        let current = self.current(source, bundle.publisher.name(), store, context, output)?;
        let warnings = current
            .freshness()
            .check(&bundle.manifest, &bundle.manifest_digest)
            .map_err(|refusal| Failure::refused(&refusal))?;
        for warning in warnings.iter().chain(&bundle.warnings) {
            output.warning(warning);
        }
        let options = InstallOptions {
            source: place.recorded.clone(),
            now: context.now,
            allow_rollback: self.allow_rollback.clone(),
            accept: self.accepted()?,
        };
        match store.install(&bundle, &options)? {
            Outcome::Installed {
                installed,
                previous,
            } => {
                if previous.is_some() {
                    // Somebody who reads the old file is not waited for.
                    let _ = store.gc();
                }
                print(
                    output,
                    "installed",
                    &installed.id,
                    &installed.version.to_string(),
                    installed.sequence,
                )
            }
            Outcome::Unchanged(installed) => print(
                output,
                "unchanged",
                &installed.id,
                &installed.version.to_string(),
                installed.sequence,
            ),
            Outcome::Held {
                held, difference, ..
            } => {
                self.held(&held, &difference, output)?;
                Ok(Exit::Denied)
            }
            _ => Err(Failure::new(Kind::Failed, "store-io", "an unknown outcome")),
        }
    }

    fn held(
        &self,
        held: &Held,
        difference: &Difference,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if output.json() {
            return output.value(&json!({
                "ok": false, "state": "held", "id": held.id, "version": held.version.to_string(),
                "sequence": held.sequence, "surface": held.surface,
                "changes": difference.changes,
            }));
        }
        output.line(format!(
            "{} {} is held: what agents or policies see of it changes",
            held.id, held.version
        ))?;
        for change in &difference.changes {
            let place = visible_line(&change.field.join("."), 200);
            output.line(format!(
                "  {} {} {place}",
                change.kind,
                visible_line(&change.id, 200)
            ))?;
            for (sign, value) in [("-", &change.from), ("+", &change.to)] {
                if let Some(value) = value {
                    output.line(format!(
                        "    {sign} {}",
                        visible_line(&value.to_string(), 600)
                    ))?;
                }
            }
        }
        output.note(format!(
            "accept it with: toolward update {} --accept {}",
            held.id, held.surface
        ));
        Ok(())
    }
}

fn print(
    output: &mut Output,
    state: &str,
    id: &str,
    version: &str,
    sequence: u64,
) -> Result<Exit, Failure> {
    if output.json() {
        output.value(&json!({
            "ok": true, "state": state, "id": id, "version": version, "sequence": sequence,
        }))?;
    } else {
        output.line(format!("{id} {version} (sequence {sequence}): {state}"))?;
    }
    Ok(Exit::Fine)
}
