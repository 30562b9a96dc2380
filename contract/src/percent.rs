//! Percent-encoding (RFC 3986, section 2.1), as servers read it.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode};

/// All but the unreserved characters (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encodes everything but unreserved characters.
///
/// ```
/// use toolward_contract::percent::percent_encoded;
///
/// assert_eq!(percent_encoded(b"a b/~").to_string(), "a%20b%2F~");
/// ```
#[must_use]
pub fn percent_encoded(text: &[u8]) -> PercentEncode<'_> {
    percent_encoding::percent_encode(text, RESERVED)
}

/// Decodes once; escapes that are invalid stay as they are.
///
/// ```
/// use toolward_contract::percent::percent_decoded;
///
/// assert_eq!(percent_decoded(b"k%65y%zz"), b"key%zz");
/// ```
#[must_use]
pub fn percent_decoded(text: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(text).collect()
}
