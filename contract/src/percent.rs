//! Percent-encoding (RFC 3986, section 2.1), as servers read it.

/// Decodes once; escapes that are invalid stay as they are.
///
/// ```
/// use toolward_contract::percent::percent_decoded;
///
/// assert_eq!(percent_decoded(b"k%65y%zz"), b"key%zz");
/// ```
#[must_use]
pub fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = match after {
            [high, low, tail @ ..] if *first == b'%' => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let byte = digit(high)
                    .zip(digit(low))
                    .map(|(high, low)| high * 16 + low);
                byte.and_then(|byte| Some((u8::try_from(byte).ok()?, tail)))
            }
            _ => None,
        };
        let (byte, left) = escaped.unwrap_or((*first, after));
        decoded.push(byte);
        rest = left;
    }
    decoded
}
