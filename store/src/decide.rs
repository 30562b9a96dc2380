//! Decides from the state whether a release is installed or held, and writes the result in the same
//! transaction.

use rusqlite::{OptionalExtension, ToSql, Transaction, params};
use toolward_bundle::surface::BundleSurface;
use toolward_signing::{Digest, sequence};

use crate::error::Error;
use crate::model::{self, Acceptance, HeldUpdate, InstalledBundle, StoredRow as _, number};
use crate::rollback;
use crate::search;

/// A verified release to install or to hold. In either case `held` has the facts that the state
/// stores.
pub(crate) struct ReleaseCandidate {
    pub(crate) held: HeldUpdate,
    pub(crate) surface: BundleSurface,
}

/// Whether a release is installed or held.
pub(crate) enum ReleaseDecision {
    Unchanged(Box<InstalledBundle>),
    Install(Acceptance),
    Hold,
}

/// Decides whether a release is installed or held. `accept` is the digest of the surface (what a
/// model or a policy sees of a bundle) that was accepted beforehand.
pub(crate) fn decide(
    sql: &Transaction<'_>,
    candidate: &ReleaseCandidate,
    accept: Option<Digest>,
) -> Result<ReleaseDecision, Error> {
    let new = &candidate.held;
    let current = InstalledBundle::of(sql, &new.id)?;
    if let Some(current) = &current
        && (current.digest, &current.publisher) == (new.digest, &new.publisher)
        // The same release can have a new surface if it takes actions from other bundles.
        && (current.surface == new.surface || !candidate.surface.takes_actions())
    {
        return Ok(ReleaseDecision::Unchanged(Box::new(current.clone())));
    }
    check_sequence(sql, new)?;
    check_duplicates(sql, candidate)?;
    let accepted = accept == Some(new.surface);
    Ok(match current {
        None if accept.is_none() => ReleaseDecision::Install(Acceptance::First),
        Some(current) if current.surface == new.surface => {
            ReleaseDecision::Install(Acceptance::SameSurface)
        }
        _ if accepted => ReleaseDecision::Install(Acceptance::Accepted),
        _ => ReleaseDecision::Hold,
    })
}

fn check_sequence(sql: &Transaction<'_>, new: &HeldUpdate) -> Result<(), Error> {
    let found = (new.sequence, new.digest);
    let known = rollback::highest(sql, &new.publisher, &new.id)?;
    // If the held release, or a release that was installed before, has the same sequence, it must
    // be the same release.
    let waiting = HeldUpdate::of(sql, &new.id)?
        .filter(|held| held.publisher == new.publisher && held.sequence == new.sequence)
        .map(|held| (held.sequence, held.digest));
    let same = rollback::at(sql, &new.publisher, &new.id, new.sequence)?;
    let same = same.map(|digest| (new.sequence, digest));
    let check = match new.allow_rollback {
        Some(_) => sequence::check_allowing_rollback,
        None => sequence::check,
    };
    for known in [known, waiting, same] {
        check(known, found)
            .map_err(|refusal| refusal.at(format!("{} by {}", new.id, new.publisher)))?;
    }
    Ok(())
}

/// The ids in a bundle that no other bundle may have.
fn provides(surface: &BundleSurface) -> Vec<(&'static str, String)> {
    let tools = surface.tools().into_iter();
    let tools = tools.map(|tool| ("tool", tool.major_id));
    let drivers = surface.drivers().map(|id| ("driver", id.to_owned()));
    tools.chain(drivers).collect()
}

/// Writes the ids that an installed bundle provides, in place of its earlier ids.
pub(crate) fn write_provides(
    sql: &Transaction<'_>,
    bundle: &str,
    surface: &BundleSurface,
) -> Result<(), Error> {
    sql.execute("DELETE FROM provides WHERE bundle = ?1", [bundle])?;
    for (kind, name) in provides(surface) {
        sql.prepare_cached("INSERT INTO provides (kind, name, bundle) VALUES (?1, ?2, ?3)")?
            .execute(params![kind, name, bundle])?;
    }
    Ok(())
}

fn check_duplicates(sql: &Transaction<'_>, candidate: &ReleaseCandidate) -> Result<(), Error> {
    let id = &candidate.held.id;
    let mut statement = sql.prepare_cached(
        "SELECT bundle FROM provides WHERE kind = ?1 AND name = ?2 AND bundle <> ?3",
    )?;
    for (kind, name) in provides(&candidate.surface) {
        let first: Option<String> = statement
            .query_row(params![kind, name, id], |row| row.get(0))
            .optional()?;
        if let Some(first) = first {
            return Err(Error::Duplicate {
                kind: kind.to_owned(),
                name,
                first,
                second: id.clone(),
            });
        }
    }
    Ok(())
}

/// Installs a release: writes the row, the provided ids and the sequence mark, and removes a held
/// update of the bundle.
pub(crate) fn install(
    sql: &Transaction<'_>,
    candidate: &ReleaseCandidate,
    acceptance: Acceptance,
    at: i64,
) -> Result<InstalledBundle, Error> {
    let new = &candidate.held;
    search::settle_arrivals(sql)?;
    write_surface(sql, &candidate.surface)?;
    sql.execute("DELETE FROM installed WHERE id = ?1", [&new.id])?;
    sql.execute("DELETE FROM held WHERE id = ?1", [&new.id])?;
    write_release(
        sql,
        "installed",
        new,
        at,
        ("acceptance", acceptance.as_str()),
    )?;
    write_provides(sql, &new.id, &candidate.surface)?;
    search::write_tools(sql, &new.id, &candidate.surface)?;
    search::add_arrivals(sql)?;
    rollback::raise(sql, new, at)?;
    forget_surfaces(sql)?;
    InstalledBundle::of(sql, &new.id)?
        .ok_or_else(|| Error::Corrupt(format!("expected the row of {}", new.id).into()))
}

/// Holds a release, in place of an update that was held before.
pub(crate) fn hold(
    sql: &Transaction<'_>,
    candidate: &ReleaseCandidate,
    at: i64,
) -> Result<HeldUpdate, Error> {
    let new = &candidate.held;
    write_surface(sql, &candidate.surface)?;
    write_release(sql, "held", new, at, ("back", &new.allow_rollback))?;
    forget_surfaces(sql)?;
    HeldUpdate::of(sql, &new.id)?
        .ok_or_else(|| Error::Corrupt(format!("expected the held row of {}", new.id).into()))
}

/// Writes a row of `installed` or `held`, which differ in the last column.
fn write_release(
    sql: &Transaction<'_>,
    table: &str,
    new: &HeldUpdate,
    at: i64,
    (column, value): (&str, impl ToSql),
) -> Result<(), Error> {
    let insert = format!(
        "INSERT OR REPLACE INTO {table} (id, digest, version, sequence, publisher, signers, surface, source, at,
                                         {column})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
    );
    sql.execute(
        &insert,
        params![
            new.id,
            new.digest.to_string(),
            new.version.to_string(),
            number(new.sequence)?,
            new.publisher,
            model::signers_text(&new.signers),
            new.surface.to_string(),
            new.source,
            at,
            value,
        ],
    )?;
    Ok(())
}

pub(crate) fn write_surface(sql: &Transaction<'_>, surface: &BundleSurface) -> Result<(), Error> {
    sql.execute(
        "INSERT OR IGNORE INTO surface (digest, bytes) VALUES (?1, ?2)",
        params![surface.digest().to_string(), surface.to_bytes()],
    )?;
    Ok(())
}

/// Removes the surfaces that no installed or held release has.
pub(crate) fn forget_surfaces(sql: &Transaction<'_>) -> Result<(), Error> {
    sql.execute(
        "DELETE FROM surface WHERE digest NOT IN
             (SELECT surface FROM installed UNION ALL SELECT surface FROM held)",
        [],
    )?;
    Ok(())
}
