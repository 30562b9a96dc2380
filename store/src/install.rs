//! Installing and updating: the file is on disk before the state names it, and the state changes in one
//! transaction. Killed anywhere, the old release or the new one is installed, and works.

use std::time::SystemTime;

use toolward_bundle::Content;
use toolward_bundle::libraries::{Libraries, NoLibraries};
use toolward_bundle::surface::{BundleSurface, SurfaceDifference};
use toolward_signing::Digest;
use toolward_signing::verify::{Bundle, Verified};

use crate::audit_log::{NewDecision, Verdict, record};
use crate::decide::{self, Candidate, Decision};
use crate::error::Error;
use crate::lock;
use crate::model::{self, Acceptance, Held, Installed};
use crate::object::Objects;
use crate::store::Store;
use crate::times;

/// What an installation depends on besides the bundle.
#[derive(Clone, Debug)]
pub struct InstallOptions {
    /// Where the bundle comes from, for people: recorded as it is.
    pub source: String,
    /// The time, as fixed once for the whole operation.
    pub now: SystemTime,
    /// Allows a lower sequence than one installed before, and says why. Two bundles with one sequence are
    /// refused all the same.
    pub allow_rollback: Option<String>,
    /// The surface that was accepted beforehand. Any other is held, at first install, too.
    pub accept: Option<Digest>,
}

/// What an installation came to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InstallOutcome {
    /// The bundle is installed.
    Installed {
        /// What is installed now.
        installed: Installed,
        /// What was installed before.
        previous: Option<Installed>,
    },
    /// The bundle's surface is another one: what was installed before still is.
    Held {
        /// The update that waits.
        held: Held,
        /// What is installed.
        current: Option<Installed>,
        /// What would be seen otherwise; from nothing at all, where nothing is installed.
        difference: SurfaceDifference,
    },
    /// This very bundle is installed. Its recorded source is the latest by now.
    Unchanged(Installed),
}

impl Store {
    /// Installs a bundle that takes no actions from others, or updates one: [`Store::install_with`].
    ///
    /// # Errors
    /// Those of [`Store::install_with`].
    pub fn install(
        &self,
        bundle: &Verified<Bundle>,
        options: &InstallOptions,
    ) -> Result<InstallOutcome, Error> {
        self.install_with(bundle, options, &NoLibraries)
    }

    /// Installs a bundle, or updates one. An update with another surface is held; so is a bundle that is installed,
    /// where the actions that it takes from `libraries` give it another surface than the one that was accepted.
    ///
    /// # Errors
    /// [`Error::Content`] for a bundle that no host would take, [`Error::Refused`] for a `rollback` or an
    /// `equivocation`, [`Error::Duplicate`]; [`Error::Full`], [`Error::Busy`], [`Error::Io`].
    /// Refusals are recorded, and nothing else of them stays.
    pub fn install_with(
        &self,
        bundle: &Verified<Bundle>,
        options: &InstallOptions,
        libraries: &dyn Libraries,
    ) -> Result<InstallOutcome, Error> {
        let result = self.try_install(bundle, options, libraries);
        if let Err(error) = &result {
            let refused = NewDecision {
                publisher: Some(bundle.publisher.name().to_owned()),
                digest: Some(bundle.manifest_digest),
                ..NewDecision::refused("install", &bundle.manifest.id, error)
            };
            // The refusal stands, whether or not it can be written down.
            let _ = self.record(&refused, options.now);
        }
        result
    }

    fn try_install(
        &self,
        bundle: &Verified<Bundle>,
        options: &InstallOptions,
        libraries: &dyn Libraries,
    ) -> Result<InstallOutcome, Error> {
        let candidate = candidate(bundle, options, libraries)?;
        let at = times::seconds(options.now);
        let _lock = lock::shared(&self.directory)?;
        // What will be refused is refused before anything is written. What others do meanwhile is looked at
        // again below, where it counts.
        self.state
            .read(|sql| decide::decide(sql, &candidate, options.accept))?;
        let bytes = Objects::encode(bundle);
        // The file of a bundle that is there is repaired if it isn't what it should be, and gets the
        // signatures of this one.
        if !self.objects.holds(&bundle.manifest_digest, &bytes)? {
            self.objects.write(&bundle.manifest_digest, &bytes)?;
        }
        self.state.write(|sql| {
            let previous = model::one_installed(sql, &candidate.held.id)?;
            match decide::decide(sql, &candidate, options.accept)? {
                Decision::Unchanged(installed) => {
                    let source = candidate.held.source.clone();
                    sql.execute(
                        "UPDATE installed SET source = ?1 WHERE id = ?2",
                        [&source, &installed.id],
                    )?;
                    let installed = Installed {
                        source,
                        ..*installed
                    };
                    Ok(InstallOutcome::Unchanged(installed))
                }
                Decision::Install(acceptance) => {
                    let installed = decide::install(sql, &candidate, acceptance, at)?;
                    let reason = reason(&candidate.held, acceptance);
                    record(
                        sql,
                        &decision(&candidate.held, "install", Verdict::Accepted, reason),
                        at,
                    )?;
                    Ok(InstallOutcome::Installed {
                        installed,
                        previous,
                    })
                }
                Decision::Hold => {
                    let held = decide::hold(sql, &candidate, at)?;
                    let old = previous
                        .as_ref()
                        .map(|old| model::surface(sql, &old.surface));
                    let old = old.transpose()?.unwrap_or_else(BundleSurface::empty);
                    let difference = old.difference(&candidate.surface);
                    let reason = format!(
                        "the surface {} is not the one accepted: {} changes",
                        held.surface,
                        difference.changes.len()
                    );
                    record(sql, &decision(&held, "install", Verdict::Held, reason), at)?;
                    Ok(InstallOutcome::Held {
                        held,
                        current: previous,
                        difference,
                    })
                }
            }
        })
    }
}

fn candidate(
    bundle: &Verified<Bundle>,
    options: &InstallOptions,
    libraries: &dyn Libraries,
) -> Result<Candidate, Error> {
    let content = Content::from_verified_with(bundle.clone(), libraries)?;
    let surface = BundleSurface::of(&content);
    Ok(Candidate {
        held: Held {
            id: bundle.manifest.id.clone(),
            digest: bundle.manifest_digest,
            version: bundle.manifest.version.clone(),
            sequence: bundle.manifest.sequence,
            publisher: bundle.publisher.name().to_owned(),
            signers: bundle.signers.clone(),
            surface: surface.digest(),
            source: options.source.clone(),
            at: times::timestamp(times::seconds(options.now))?,
            allow_rollback: options.allow_rollback.clone(),
        },
        surface,
    })
}

fn reason(new: &Held, acceptance: Acceptance) -> String {
    let why = match acceptance {
        Acceptance::First => "first installation",
        Acceptance::SameSurface => "the surface is the same",
        Acceptance::Accepted => "the surface was accepted",
    };
    let reason = format!(
        "{why}; version {}, sequence {}, surface {}, from {}",
        new.version, new.sequence, new.surface, new.source
    );
    match &new.allow_rollback {
        Some(back) => format!("{reason}; going back was allowed: {back}"),
        None => reason,
    }
}

pub(crate) fn decision(new: &Held, action: &str, verdict: Verdict, reason: String) -> NewDecision {
    NewDecision {
        action: action.to_owned(),
        subject: new.id.clone(),
        publisher: Some(new.publisher.clone()),
        digest: Some(new.digest),
        verdict,
        code: None,
        reason,
    }
}
