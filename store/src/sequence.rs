//! Whether a release goes back or contradicts one that is known. Pure.

use toolward_signing::Digest;

/// How a release stands to the highest one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing is known, it is newer, or it is the same one.
    Forward,
    /// It is older.
    Back { highest: u64 },
    /// It says that it is one that is known, and is another.
    Other { known: Digest },
}

/// Compares a release with the highest one known.
pub(crate) fn standing(known: Option<(u64, Digest)>, sequence: u64, digest: Digest) -> Standing {
    match known {
        Some((highest, _)) if sequence < highest => Standing::Back { highest },
        Some((highest, known)) if sequence == highest && known != digest => {
            Standing::Other { known }
        }
        _ => Standing::Forward,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_newer_or_the_same_goes_forward() {
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        assert_eq!(standing(None, 0, one), Standing::Forward);
        assert_eq!(standing(Some((5, one)), 6, two), Standing::Forward);
        assert_eq!(standing(Some((5, one)), 5, one), Standing::Forward);
        assert_eq!(
            standing(Some((5, one)), 5, two),
            Standing::Other { known: one }
        );
        assert_eq!(
            standing(Some((5, one)), 4, one),
            Standing::Back { highest: 5 }
        );
        assert_eq!(
            standing(Some((u64::MAX, one)), 5, two),
            Standing::Back { highest: u64::MAX }
        );
    }
}
