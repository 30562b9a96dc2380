//! `install`, `update`, `list`, `remove`, `search`: the bundles of this machine.

use clap::Args;
use serde_json::json;
use toolward_bundle::surface::Difference;
use toolward_bundle::text::visible_line;
use toolward_registry::{DocumentKind, Source};
use toolward_signing::Digest;
use toolward_signing::channel::{self, Channel, VerifiedIndex};
use toolward_signing::freshness::{Freshness, Origin};
use toolward_store::search::{SearchEntry, rank};
use toolward_store::{Held, InstallOptions, Outcome, Store, marks};

use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::installed::StoreFlags;
use crate::output::Output;
use crate::sources::{NetworkFlags, kept};
use crate::standing::Standing;
use crate::trust::Trust;

/// What installing and updating have in common.
#[derive(Debug, Args)]
pub(crate) struct Means {
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
    trust: Trust,

    #[command(flatten)]
    store: StoreFlags,

    #[command(flatten)]
    network: NetworkFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// A bundle: a file, a directory, an https address, or oci://…
    source: String,

    #[command(flatten)]
    means: Means,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    /// The installed bundle's id [default: all]
    id: Option<String>,

    #[command(flatten)]
    means: Means,
}

impl Install {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let means = &self.means;
        let standing = means.trust.standing(environment, output)?;
        let store = means.store.open(environment)?;
        means.install(&self.source, &store, &standing, environment, output)
    }
}

impl Update {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let means = &self.means;
        let standing = means.trust.standing(environment, output)?;
        let store = means.store.open(environment)?;
        if let (Some(id), Some(surface)) = (&self.id, means.accepted()?) {
            let waits = store.pending()?.into_iter().any(|(held, _)| held.id == *id);
            if waits {
                let verify = |bytes: &[u8]| standing.archive(bytes);
                let installed = store.accept(id, &surface, &verify, standing.now)?;
                return told(
                    output,
                    "installed",
                    &installed.id,
                    &installed.version.to_string(),
                    installed.sequence,
                );
            }
        }
        let mut sources = Vec::new();
        for installed in store.list()? {
            if self.id.as_ref().is_none_or(|id| *id == installed.id) {
                sources.push((installed.id, installed.source));
            }
        }
        if let (Some(id), true) = (&self.id, sources.is_empty()) {
            return Err(toolward_store::Error::NotInstalled { id: id.clone() }.into());
        }
        let mut worst = Exit::Fine;
        for (id, source) in sources {
            match means.install(&source, &store, &standing, environment, output) {
                Ok(Exit::Fine) => {}
                Ok(exit) => worst = exit,
                Err(failure) if self.id.is_some() => return Err(failure),
                Err(failure) => {
                    output.warning(format!("{id}: {} ({})", failure.message, failure.code));
                    worst = failure.exit;
                }
            }
        }
        Ok(worst)
    }
}

impl Means {
    fn accepted(&self) -> Result<Option<Digest>, Failure> {
        let digest = self.accept.as_deref().map(str::parse).transpose();
        digest
            .map_err(|refusal: toolward_signing::Refusal| Failure::usage(refusal.code(), &refusal))
    }

    fn install(
        &self,
        from: &str,
        store: &Store,
        standing: &Standing,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let source = Source::parse(from)?;
        let index = self.index(&source, store, standing, output)?;
        let bundle = self
            .network
            .bundle(&source, standing, environment, output)?;
        let freshness = Freshness {
            origin: if source.is_remote() {
                Origin::Remote
            } else {
                Origin::Local
            },
            index: index.as_ref(),
            max_age: standing.settings.max_age,
            now: standing.now,
            mode: standing.settings.mode,
        };
        let warnings = freshness
            .check(&bundle.manifest, &bundle.manifest_digest)
            .map_err(|refusal| Failure::refused(&refusal))?;
        for warning in warnings.iter().chain(&bundle.warnings) {
            output.warning(warning);
        }
        let options = InstallOptions {
            source: kept(&source, from)?,
            now: standing.now,
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
                told(
                    output,
                    "installed",
                    &installed.id,
                    &installed.version.to_string(),
                    installed.sequence,
                )
            }
            Outcome::Unchanged(installed) => told(
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
            _ => Err(Failure::new(Exit::Failed, "store-io", "an unknown outcome")),
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

    /// The index of the channel that the source is held to.
    fn index(
        &self,
        source: &Source,
        store: &Store,
        standing: &Standing,
        output: &Output,
    ) -> Result<Option<VerifiedIndex>, Failure> {
        let channels = &standing.settings.channels;
        let channel = match (&self.channel, channels.as_slice()) {
            (Some(name), _) => standing.settings.channel(name).ok_or_else(|| {
                Failure::usage(
                    "channel-unknown",
                    format!("no channel {name} is configured"),
                )
                .hint("add a `[[channel]]` to toolward.toml")
            })?,
            (None, [only]) if source.is_remote() => only,
            _ => return Ok(None),
        };
        let index = fetched(channel, &self.network, store, standing)?;
        for warning in &index.warnings {
            output.warning(warning);
        }
        Ok(Some(index))
    }
}

/// The current index of a channel: verified, and no older than the last seen.
fn fetched(
    channel: &Channel,
    network: &NetworkFlags,
    store: &Store,
    standing: &Standing,
) -> Result<VerifiedIndex, Failure> {
    let bytes = network.document(channel.source(), DocumentKind::Channel)?;
    let index = channel::accept(&bytes, channel, &standing.terms())
        .map_err(|refusal| Failure::refused(&refusal))?;
    let name = channel.fingerprint().digest().to_string();
    let kind = marks::DocumentKind::Channel;
    store.see_document(kind, &name, index.version, index.digest, standing.now)?;
    Ok(index)
}

fn told(
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

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    store: StoreFlags,
}

impl List {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let Some(store) = self.store.existing(environment)? else {
            output.note("nothing is installed");
            return Ok(Exit::Fine);
        };
        let pending = store.pending()?;
        for installed in store.list()? {
            let held = pending.iter().find(|(held, _)| held.id == installed.id);
            if output.json() {
                output.value(&json!({
                    "id": installed.id, "version": installed.version.to_string(),
                    "sequence": installed.sequence, "publisher": installed.publisher,
                    "digest": installed.digest, "surface": installed.surface,
                    "source": installed.source, "installed": installed.at.to_string(),
                    "held": held.map(|(held, _)| held.version.to_string()),
                }))?;
                continue;
            }
            output.line(format!(
                "{} {} (sequence {}) by {}",
                installed.id, installed.version, installed.sequence, installed.publisher
            ))?;
            if let Some((held, _)) = held {
                output.line(format!(
                    "  {} is held; surface {}",
                    held.version, held.surface
                ))?;
            }
        }
        for (held, _) in &pending {
            if store.installed(&held.id)?.is_none() && !output.json() {
                output.line(format!(
                    "{} {} is held; surface {}",
                    held.id, held.version, held.surface
                ))?;
            }
        }
        Ok(Exit::Fine)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The bundle's id
    id: String,

    #[command(flatten)]
    store: StoreFlags,
}

impl Remove {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let not_installed = || toolward_store::Error::NotInstalled {
            id: self.id.clone(),
        };
        let store = self
            .store
            .existing(environment)?
            .ok_or_else(not_installed)?;
        store.remove(&self.id, std::time::SystemTime::now())?;
        let collected = store.gc()?;
        if output.json() {
            output.value(&json!({ "ok": true, "removed": self.id, "files": collected.objects }))?;
        } else {
            output.line(format!("{}: removed", self.id))?;
        }
        Ok(Exit::Fine)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words of names, descriptions, tags or publishers
    query: Vec<String>,

    /// Search the index of this channel instead of what is installed
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,

    #[command(flatten)]
    trust: Trust,

    #[command(flatten)]
    store: StoreFlags,

    #[command(flatten)]
    network: NetworkFlags,
}

/// How many matches are shown.
const SHOWN: usize = 50;

impl Search {
    pub(crate) fn run(
        &self,
        environment: &Environment,
        output: &mut Output,
    ) -> Result<Exit, Failure> {
        let query = self.query.join(" ");
        if let Some(name) = &self.channel {
            let standing = self.trust.standing_or_empty(environment, output)?;
            let store = self.store.open(environment)?;
            let channel = standing.settings.channel(name).ok_or_else(|| {
                Failure::usage(
                    "channel-unknown",
                    format!("no channel {name} is configured"),
                )
                .hint("add a `[[channel]]` to toolward.toml")
            })?;
            let index = fetched(channel, &self.network, &store, &standing)?;
            let mut entries = Vec::new();
            let mut bundles = Vec::new();
            for listed in &index.bundles {
                for tool in &listed.tools {
                    entries.push(SearchEntry {
                        id: tool.id.clone(),
                        title: tool.title.clone().unwrap_or_default(),
                        description: tool.description.clone(),
                        tags: tool.tags.clone(),
                        publisher: listed.publisher.clone(),
                    });
                    bundles.push(listed);
                }
            }
            for ranked in rank(&query, &entries).into_iter().take(SHOWN) {
                if let (Some(entry), Some(listed)) =
                    (entries.get(ranked.index), bundles.get(ranked.index))
                {
                    found(entry, &listed.id, &listed.version.to_string(), output)?;
                }
            }
            return Ok(Exit::Fine);
        }
        let Some(store) = self.store.existing(environment)? else {
            output.note("nothing is installed");
            return Ok(Exit::Fine);
        };
        for match_ in store.search(&query, SHOWN)? {
            let tool = &match_.tool;
            found(&tool.entry, &tool.bundle, &tool.version.to_string(), output)?;
        }
        Ok(Exit::Fine)
    }
}

fn found(
    entry: &SearchEntry,
    bundle: &str,
    version: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    if output.json() {
        return output.value(&json!({
            "tool": entry.id, "name": entry.title, "description": entry.description,
            "tags": entry.tags, "publisher": entry.publisher, "bundle": bundle, "version": version,
        }));
    }
    output.line(format!(
        "{}  {}",
        visible_line(&entry.id, 200),
        visible_line(&entry.description, 200)
    ))?;
    output.line(format!(
        "  {bundle} {version} by {}",
        visible_line(&entry.publisher, 200)
    ))
}
