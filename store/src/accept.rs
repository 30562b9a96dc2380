//! Held updates: listing them, their difference, accepting and dropping them.

use std::time::SystemTime;

use toolward_bundle::surface::{BundleSurface, SurfaceDifference};
use toolward_signing::Digest;

use crate::audit_log::{NewDecision, Verdict, record};
use crate::decide::{self, Candidate, Decision};
use crate::error::Error;
use crate::install::decision;
use crate::load::Verify;
use crate::lock;
use crate::model::{self, Acceptance, Held, Installed};
use crate::store::Store;
use crate::times;

impl Store {
    /// The updates that wait, by id, each with what would be seen otherwise.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn pending(&self) -> Result<Vec<(Held, SurfaceDifference)>, Error> {
        self.state.read(|sql| {
            let held = model::all_held(sql)?.into_iter();
            held.map(|held| {
                let old = model::one_installed(sql, &held.id)?;
                let old = old
                    .map(|old| model::surface(sql, &old.surface))
                    .transpose()?;
                let new = model::surface(sql, &held.surface)?;
                let difference = old.unwrap_or_else(BundleSurface::empty).difference(&new);
                Ok((held, difference))
            })
            .collect()
        })
    }

    /// Installs the held update of `id`, whose surface somebody saw and accepts. It is verified again: what
    /// was revoked while it waited doesn't take the place of what works.
    ///
    /// # Errors
    /// [`Error::NotHeld`]; [`Error::SurfaceMismatch`] if another surface waits than the one accepted; those
    /// of [`Store::load`]; [`Error::Refused`] and [`Error::Duplicate`] for what came in between.
    pub fn accept(
        &self,
        id: &str,
        surface: &Digest,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<Installed, Error> {
        let result = self.try_accept(id, surface, verify, now);
        if let Err(error) = &result {
            // The refusal stands, whether or not it can be written down.
            let _ = self.record(&NewDecision::refused("accept", id, error), now);
        }
        result
    }

    fn try_accept(
        &self,
        id: &str,
        surface: &Digest,
        verify: &Verify<'_>,
        now: SystemTime,
    ) -> Result<Installed, Error> {
        let at = times::seconds(now);
        let not_held = || Error::NotHeld { id: id.to_owned() };
        let _lock = lock::shared(&self.directory)?;
        let held = self.state.read(|sql| model::one_held(sql, id))?;
        let held = held.ok_or_else(not_held)?;
        if held.surface != *surface {
            return Err(Error::SurfaceMismatch {
                id: id.to_owned(),
                accepted: *surface,
                found: held.surface,
            });
        }
        self.open_object(&held, verify)?;
        self.state.write(|sql| {
            // Another update may have taken its place since it was read.
            let waiting = model::one_held(sql, id)?.filter(|waiting| waiting.digest == held.digest);
            let held = waiting.ok_or_else(not_held)?;
            let surface = model::surface(sql, &held.surface)?;
            let candidate = Candidate { held, surface };
            // A release that was installed meanwhile only loses its held copy.
            if let Decision::Unchanged(installed) =
                decide::decide(sql, &candidate, Some(candidate.held.surface))?
            {
                sql.execute("DELETE FROM held WHERE id = ?1", [id])?;
                decide::forget_surfaces(sql)?;
                return Ok(*installed);
            }
            let installed = decide::install(sql, &candidate, Acceptance::Accepted, at)?;
            let reason = format!("the surface {} was accepted", installed.surface);
            let decision = decision(&candidate.held, "accept", Verdict::Accepted, reason);
            record(sql, &decision, at)?;
            Ok(installed)
        })
    }

    /// Drops the held update of `id`. It may come again.
    ///
    /// # Errors
    /// [`Error::NotHeld`].
    pub fn decline(&self, id: &str, now: SystemTime) -> Result<Held, Error> {
        let at = times::seconds(now);
        self.state.write(|sql| {
            let held =
                model::one_held(sql, id)?.ok_or_else(|| Error::NotHeld { id: id.to_owned() })?;
            sql.execute("DELETE FROM held WHERE id = ?1", [id])?;
            decide::forget_surfaces(sql)?;
            let reason = format!("the surface {} was declined", held.surface);
            record(
                sql,
                &decision(&held, "accept", Verdict::Refused, reason),
                at,
            )?;
            Ok(held)
        })
    }
}
