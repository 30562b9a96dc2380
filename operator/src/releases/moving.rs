//! Where an installed bundle comes from changes only when a person says so: whoever can make somebody install from
//! another place would also decide about all its updates.

use std::path::Path;

use toolward_registry::Source;
use toolward_signing::verify::Bundle;

use super::Place;
use super::install::Installer;
use crate::error::{Code, Error, Kind};
use crate::lasting_changes::{LastingChange, LastingChanges};

/// A bundle that would come from another place than before.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceMove {
    /// The bundle.
    pub id: String,
    /// The source that is recorded.
    pub from: String,
    /// The one that would be.
    pub to: String,
}

/// Asks whether a source may move; an error if it may not.
pub type ConfirmMove<'a> = &'a dyn Fn(&SourceMove) -> Result<(), Error>;

/// Whether two sources are the same place: one repository whatever the tag, one folder of a web server with the same
/// query, or one folder of this machine.
fn is_same_place(one: &Source, other: &Source) -> bool {
    match (one, other) {
        (Source::Path(one), Source::Path(other)) => {
            // However it is spelled, with `..` or through a link. One that is gone is compared as written.
            let folder = |file: &Path| {
                let folder = file.parent()?;
                Some(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
            };
            folder(one) == folder(other)
        }
        (Source::Registry(one), Source::Registry(other)) => {
            one.bare_repository() == other.bare_repository()
        }
        (Source::Web(one), Source::Web(other)) => {
            let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
            one.origin() == other.origin()
                && folder(one.path()) == folder(other.path())
                && one.query() == other.query()
        }
        _ => false,
    }
}

impl Installer<'_> {
    /// Checks that a bundle comes from where the installed one came from, or that a person wants it from elsewhere.
    /// `None`: it is the same place.
    pub(super) fn check_place(
        &self,
        bundle: &Bundle,
        place: &Place,
    ) -> Result<Option<SourceMove>, Error> {
        let id = &bundle.manifest.id;
        let Some(installed) = self.store.installed(id)? else {
            return Ok(None);
        };
        let before = Source::parse(&installed.source);
        // With whole paths, as they are recorded.
        let after = Source::parse(&place.recorded)?;
        if let Ok(before) = &before
            && is_same_place(before, &after)
        {
            return Ok(None);
        }
        // As sources are shown, without what a query may hold.
        let moved = SourceMove {
            id: id.clone(),
            from: before.map_or(installed.release.source, |before| before.to_string()),
            to: after.to_string(),
        };
        let Some(confirm) = self.move_source else {
            return Err(refused(&moved));
        };
        confirm(&moved)?;
        Ok(Some(moved))
    }

    /// Keeps that a bundle's source has moved, for the next `doctor` and `serve`.
    pub(super) fn keep_move(&self, moved: SourceMove) -> Result<(), Error> {
        let SourceMove { id, from, to } = moved;
        let what = format!("let {id} come from {to} instead of {from}");
        let state = self.environment.state_directory.as_deref();
        let change = LastingChange::new(
            "install --move-source",
            what,
            state.unwrap_or(Path::new("")),
        );
        LastingChanges::of(self.environment)?.add(change)
    }
}

fn refused(moved: &SourceMove) -> Error {
    let SourceMove { id, from, to } = moved;
    let message = format!("{id} is installed from {from}, and this is {to}");
    Error::new(Kind::Denied, Code::SourceMoves, message).hint(
        "if its updates shall come from there, give --move-source, which asks on the terminal; its channel and its \
         maximum age stay",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_repository_or_a_folder() {
        let same = |one: &str, other: &str| {
            let parse = |text: &str| Source::parse(text).unwrap();
            is_same_place(&parse(one), &parse(other))
        };
        for (one, other) in [
            ("/here/a.toolbundle", "/here/b.toolbundle"),
            ("oci://r.example/a/b:1.0.0", "oci://r.example/a/b:stable"),
            ("oci://r.example/a/b:1", "oci://r.example:443/a/b:1"),
            (
                "https://h.example/a/1.toolbundle",
                "https://h.example/a/2.toolbundle",
            ),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("/here/a.toolbundle", "/elsewhere/a.toolbundle"),
            ("/here/a.toolbundle", "/here/below/a.toolbundle"),
            ("a.toolbundle", "oci://r.example/a/b:1.0.0"),
            ("a.toolbundle", "https://h.example/a.toolbundle"),
            ("oci://r.example/a/b:1", "oci://r.example/a/c:1"),
            (
                "https://h.example/get?bundle=a",
                "https://h.example/get?bundle=b",
            ),
            ("oci://r.example/a/b:1", "oci://r.example:444/a/b:1"),
            ("oci://127.0.0.1/a/b:1", "oci://127.0.0.1:443/a/b:1"),
            ("https://h.example/a/1", "https://h.example/b/1"),
            ("https://h.example/a", "https://g.example/a"),
            ("https://h.example/a", "https://h.example:444/a"),
        ] {
            assert!(!same(one, other), "{one} {other}");
        }
    }
}
