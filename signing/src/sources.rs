//! The digest of a set of files, for provenance: the sources that a component was built from. Names and
//! bytes count, order does not.

use crate::digest::{Digest, Hasher};

/// The digest of a set of files. It is BLAKE3 over, for each file in the order of the paths' bytes: the
/// length of the path and the length of the content (each 8 bytes, little-endian), the path, the content.
/// A path given twice counts twice.
pub fn digest<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Digest {
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort();
    let mut hasher = Hasher::new();
    for (path, content) in files {
        hasher.update(&(path.len() as u64).to_le_bytes());
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(path.as_bytes());
        hasher.update(content);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes_count_and_order_does_not() {
        let files: [(&str, &[u8]); 2] = [("a", b"1"), ("b", b"2")];
        let base = digest(files);
        assert_eq!(base, digest([("b", b"2".as_slice()), ("a", b"1")]));
        for other in [
            vec![("a", b"1".as_slice())],
            vec![("a", b"2".as_slice()), ("b", b"1")],
            vec![("ab", b"1".as_slice()), ("", b"2")],
            vec![("a", b"".as_slice()), ("1b", b"2")],
        ] {
            assert_ne!(base, digest(other));
        }
    }
}
