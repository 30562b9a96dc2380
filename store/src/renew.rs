//! Surfaces of an earlier version: each is replaced by that of its bundle as it is read now, so that what changed in
//! a release is told from what a version newly looks at.

use std::time::SystemTime;

use rusqlite::{Transaction, params};
use toolward_bundle::Content;
use toolward_bundle::libraries::Libraries;
use toolward_bundle::surface::{BundleSurface, Version};

use crate::audit_log::{Verdict, record};
use crate::decide;
use crate::error::Error;
use crate::install::decision;
use crate::load::{Verify, as_held};
use crate::lock;
use crate::model::{self, Held};
use crate::store::Store;
use crate::times;

impl Store {
    /// Whether something installed or held has a surface of an earlier version.
    ///
    /// # Errors
    /// When the state can't be read.
    pub fn has_earlier_surfaces(&self) -> Result<bool, Error> {
        self.state.read(|sql| {
            let query =
                "SELECT EXISTS (SELECT 1 FROM surface WHERE substr(bytes, 1, length(?1)) <> ?1)";
            let mut statement = sql.prepare_cached(query)?;
            Ok(statement.query_row([Version::CURRENT.header()], |row| row.get(0))?)
        })
    }

    /// Reads the bundles whose surface is of an earlier version again, and gives them that of now: what was accepted
    /// stays accepted where the earlier surface is that of the very bundle, as `libraries` are now. A bundle that no
    /// longer verifies, and one whose actions changed, keeps the earlier one, so that an update of it is held. An
    /// update that is held waits under its new surface.
    ///
    /// # Errors
    /// When the state can't be read or written.
    pub fn renew_surfaces(
        &self,
        verify: &Verify<'_>,
        libraries: &dyn Libraries,
        now: SystemTime,
    ) -> Result<(), Error> {
        let _lock = lock::shared(&self.directory)?;
        let (installed, held) = self
            .state
            .read(|sql| Ok((model::all_installed(sql)?, model::all_held(sql)?)))?;
        let installed: Vec<_> = installed.iter().map(|one| (as_held(one), false)).collect();
        let held = held.into_iter().map(|one| (one, true));
        for (one, waits) in installed.into_iter().chain(held) {
            let earlier = self.state.read(|sql| model::surface(sql, &one.surface))?;
            if earlier.version() == Version::CURRENT {
                continue;
            }
            let Ok(bundle) = self.open_object(&one, verify) else {
                continue;
            };
            let Ok(content) = Content::from_verified_with(bundle, libraries) else {
                continue;
            };
            if !waits && !BundleSurface::is_of(&content, &one.surface) {
                continue;
            }
            let surface = BundleSurface::of(&content);
            self.state
                .write(|sql| renew(sql, &one, &surface, waits, times::seconds(now)))?;
        }
        Ok(())
    }
}

fn renew(
    sql: &Transaction<'_>,
    one: &Held,
    surface: &BundleSurface,
    waits: bool,
    at: i64,
) -> Result<(), Error> {
    let digest = surface.digest().to_string();
    sql.execute(
        "INSERT OR IGNORE INTO surface (digest, bytes) VALUES (?1, ?2)",
        params![digest, surface.to_bytes()],
    )?;
    let update = match waits {
        false => "UPDATE installed SET surface = ?1 WHERE id = ?2 AND digest = ?3 AND surface = ?4",
        true => "UPDATE held SET surface = ?1 WHERE id = ?2 AND digest = ?3 AND surface = ?4",
    };
    let of = params![
        digest,
        one.id,
        one.digest.to_string(),
        one.surface.to_string()
    ];
    if sql.execute(update, of)? > 0 {
        if !waits {
            decide::write_provides(sql, &one.id, surface)?;
        }
        let reason = format!(
            "the surface {} is {digest} since surfaces have more fields",
            one.surface
        );
        record(
            sql,
            &decision(one, "surface", Verdict::Accepted, reason),
            at,
        )?;
    }
    decide::forget_surfaces(sql)
}
