//! Whose a file or folder is, and what others may do with it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;

use crate::error::Problem;

/// Who may own a file or folder, and what its mode may allow to group and others.
///
/// Nothing is said about access control lists: where there is one, the bits of the group are its mask, so that
/// an entry for somebody else shows as access of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A secret, or what only this user's programs use: the user's own, no access for anybody else.
    Private,
    /// What others may read and this user alone writes.
    Own,
    /// What others may read; the user's own, or root's, who could write it in any case.
    OwnOrRoot,
}

impl Protection {
    /// Checks what is known of a file or folder. It has to come from an open descriptor, or from a folder that
    /// nobody else can write to: else what is used later may be something else.
    ///
    /// # Errors
    /// [`Problem::Owner`] or [`Problem::Mode`].
    pub fn check(self, metadata: &Metadata) -> Result<(), Problem> {
        let user = rustix::process::geteuid().as_raw();
        self.allows(metadata.uid(), metadata.mode(), user)
    }

    fn allows(self, owner: u32, mode: u32, user: u32) -> Result<(), Problem> {
        let (root, forbidden) = match self {
            Self::Private => (false, 0o077),
            Self::Own => (false, 0o022),
            Self::OwnOrRoot => (true, 0o022),
        };
        if owner != user && !(root && owner == 0) {
            return Err(Problem::Owner { owner, user });
        }
        if mode & forbidden != 0 {
            return Err(Problem::Mode {
                mode: mode & 0o7777,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Protection; 3] = [Protection::Private, Protection::Own, Protection::OwnOrRoot];
    const USER: u32 = 1000;
    /// A regular file.
    const FILE: u32 = 0o100_000;

    #[test]
    fn others_never_own_it_and_root_only_where_that_is_said() {
        for protection in ALL {
            assert!(protection.allows(USER, FILE | 0o600, USER).is_ok());
            let other = protection.allows(1001, FILE | 0o600, USER);
            assert!(matches!(
                other,
                Err(Problem::Owner {
                    owner: 1001,
                    user: USER
                })
            ));
            let root = protection.allows(0, FILE | 0o600, USER);
            assert_eq!(root.is_ok(), protection == Protection::OwnOrRoot);
            assert!(protection.allows(0, FILE | 0o600, 0).is_ok());
        }
    }

    #[test]
    fn each_bit_of_group_and_others_counts() {
        for bit in [0o040, 0o020, 0o010, 0o004, 0o002, 0o001] {
            for protection in ALL {
                let forbidden = protection == Protection::Private || bit & 0o022 != 0;
                let found = protection.allows(USER, FILE | 0o600 | bit, USER);
                assert_eq!(found.is_err(), forbidden, "{protection:?} {bit:o}");
            }
        }
    }

    #[test]
    fn the_owners_bits_and_the_set_id_bits_are_nobody_elses_access() {
        for mode in [0o000, 0o400, 0o700, 0o4600, 0o2700, 0o1700] {
            for protection in ALL {
                assert!(protection.allows(USER, FILE | mode, USER).is_ok());
            }
        }
        let found = Protection::Private.allows(USER, FILE | 0o4640, USER);
        assert!(matches!(found, Err(Problem::Mode { mode: 0o4640 })));
    }
}
