//! The secret of an installation that the idempotency keys of drivers are made with, for calls with ids of their
//! callers. It lies in a folder of its own in the state directory, and is made where it is missing.

use std::io::ErrorKind;
use std::path::Path;

use toolward_files::{Error, Folder, Links, Problem, Protection};

/// The secret in this state directory.
pub(crate) fn of(state: &Path) -> Result<[u8; 32], Error> {
    let folder = state.join("ids");
    Folder::make(&folder, Protection::Private)?;
    let path = folder.join("secret");
    let fail = |action, source| Error {
        path: path.clone(),
        problem: Problem::Io { action, source },
    };
    let mut secret = [0; 32];
    match toolward_files::open(&path, Protection::Private, Links::Refuse) {
        Err(error) if error.is_missing() => {}
        file => return read(&toolward_files::read(file?, &path, 64)?, &path),
    }
    getrandom::fill(&mut secret)
        .map_err(|error| fail("made", std::io::Error::other(error.to_string())))?;
    match toolward_files::create(&path, &secret, 0o600) {
        Ok(()) => Ok(secret),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = toolward_files::open(&path, Protection::Private, Links::Refuse)?;
            read(&toolward_files::read(file, &path, 64)?, &path)
        }
        Err(error) => Err(fail("created", error)),
    }
}

fn read(bytes: &[u8], path: &Path) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| Error {
        path: path.to_owned(),
        problem: Problem::Io {
            action: "read",
            source: std::io::Error::other("expected 32 bytes"),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn it_is_made_once_for_its_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let secret = of(&state).unwrap();
        assert_ne!(secret, [0; 32]);
        assert_eq!(of(&state).unwrap(), secret);
        let path = state.join("ids/secret");
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(of(&folder.path().join("other")).unwrap(), secret);
    }

    #[test]
    fn one_that_is_damaged_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        of(folder.path()).unwrap();
        let path = folder.path().join("ids/secret");
        for length in [0, 31, 33, 1000] {
            std::fs::write(&path, vec![7; length]).unwrap();
            assert!(of(folder.path()).is_err(), "{length}");
        }
        std::fs::write(&path, [7; 32]).unwrap();
        assert_eq!(of(folder.path()).unwrap(), [7; 32]);
        let open = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&path, open).unwrap();
        assert!(of(folder.path()).is_err());
    }
}
