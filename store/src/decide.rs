//! What becomes of a release: a decision over the state, inside one transaction, and the writing of it.

use rusqlite::{OptionalExtension, Transaction, params};
use toolward_bundle::surface::BundleSurface;
use toolward_signing::{Digest, sequence};

use crate::arrivals;
use crate::error::Error;
use crate::model::{self, Acceptance, Held, Installed, number};
use crate::rollback;
use crate::tools;

/// A verified release that asks to be installed. `held` has what the state keeps of it.
pub(crate) struct Candidate {
    pub(crate) held: Held,
    pub(crate) surface: BundleSurface,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    Unchanged(Box<Installed>),
    Install(Acceptance),
    Hold,
}

/// Decides. `accept` is the surface that was accepted beforehand.
pub(crate) fn decide(
    sql: &Transaction<'_>,
    candidate: &Candidate,
    accept: Option<Digest>,
) -> Result<Decision, Error> {
    let new = &candidate.held;
    let current = model::one_installed(sql, &new.id)?;
    if let Some(current) = &current
        && (current.digest, &current.publisher) == (new.digest, &new.publisher)
        // The actions that it takes from other bundles may demand something else by now.
        && (current.surface == new.surface || !candidate.surface.takes_actions())
    {
        return Ok(Decision::Unchanged(Box::new(current.clone())));
    }
    check_sequence(sql, new)?;
    check_duplicates(sql, candidate)?;
    let accepted = accept == Some(new.surface);
    Ok(match current {
        None if accept.is_none() => Decision::Install(Acceptance::First),
        Some(current) if current.surface == new.surface => {
            Decision::Install(Acceptance::SameSurface)
        }
        _ if accepted => Decision::Install(Acceptance::Accepted),
        _ => Decision::Hold,
    })
}

fn check_sequence(sql: &Transaction<'_>, new: &Held) -> Result<(), Error> {
    let found = (new.sequence, new.digest);
    let known = rollback::highest(sql, &new.publisher, &new.id)?;
    // A release that waits, and one that was gone back from, are known, too.
    let waiting = model::one_held(sql, &new.id)?
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

/// Which ids a bundle brings that no other may.
fn provides(surface: &BundleSurface) -> Vec<(&'static str, String)> {
    let tools = surface.tools().into_iter();
    let tools = tools.map(|tool| ("tool", tool.major_id));
    let drivers = surface.drivers().map(|id| ("driver", id.to_owned()));
    tools.chain(drivers).collect()
}

/// Writes what an installed bundle provides, in place of what it did.
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

fn check_duplicates(sql: &Transaction<'_>, candidate: &Candidate) -> Result<(), Error> {
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

/// Installs: the row, what it provides, its mark; an update of it that was held is gone.
pub(crate) fn install(
    sql: &Transaction<'_>,
    candidate: &Candidate,
    acceptance: Acceptance,
    at: i64,
) -> Result<Installed, Error> {
    let new = &candidate.held;
    arrivals::settle(sql)?;
    write_surface(sql, candidate)?;
    sql.execute("DELETE FROM installed WHERE id = ?1", [&new.id])?;
    sql.execute("DELETE FROM held WHERE id = ?1", [&new.id])?;
    sql.execute(
        "INSERT INTO installed (id, digest, version, sequence, publisher, signers, surface, source, at,
                                acceptance)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
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
            acceptance.as_str(),
        ],
    )?;
    write_provides(sql, &new.id, &candidate.surface)?;
    tools::write(sql, &new.id, &candidate.surface)?;
    arrivals::note(sql)?;
    rollback::raise(sql, new, at)?;
    forget_surfaces(sql)?;
    model::one_installed(sql, &new.id)?
        .ok_or_else(|| Error::Corrupt(format!("expected the row of {}", new.id).into()))
}

/// Holds, in place of an update that was held before.
pub(crate) fn hold(sql: &Transaction<'_>, candidate: &Candidate, at: i64) -> Result<Held, Error> {
    let new = &candidate.held;
    write_surface(sql, candidate)?;
    sql.execute(
        "INSERT OR REPLACE INTO held (id, digest, version, sequence, publisher, signers, surface, source, at,
                                      back)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
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
            new.allow_rollback,
        ],
    )?;
    forget_surfaces(sql)?;
    model::one_held(sql, &new.id)?
        .ok_or_else(|| Error::Corrupt(format!("expected the held row of {}", new.id).into()))
}

fn write_surface(sql: &Transaction<'_>, candidate: &Candidate) -> Result<(), Error> {
    sql.execute(
        "INSERT OR IGNORE INTO surface (digest, bytes) VALUES (?1, ?2)",
        params![
            candidate.held.surface.to_string(),
            candidate.surface.to_bytes()
        ],
    )?;
    Ok(())
}

/// Removes the surfaces that nothing installed or held has.
pub(crate) fn forget_surfaces(sql: &Transaction<'_>) -> Result<(), Error> {
    sql.execute(
        "DELETE FROM surface WHERE digest NOT IN
             (SELECT surface FROM installed UNION ALL SELECT surface FROM held)",
        [],
    )?;
    Ok(())
}
