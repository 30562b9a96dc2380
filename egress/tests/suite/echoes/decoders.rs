//! Decoders that read back the text that a guest got. They share no code with the redactor.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::encodings::name;

/// The length from which a part of a secret counts as revealed. Shorter parts occur by chance, and
/// the edges of base64 reveal a few bits.
const TELLING: usize = 6;

/// A part of the secret that the decoders find in the guest's text.
pub(super) fn told(text: &[u8], secret: &str) -> Option<Vec<u8>> {
    let telling: Vec<&[u8]> = secret.as_bytes().windows(TELLING).collect();
    let mut views = vec![text.to_vec()];
    for _ in 0..2 {
        let undone: Vec<Vec<u8>> = views
            .iter()
            .flat_map(|view| {
                [
                    percent_decoded(view),
                    json_decoded(view),
                    html_decoded(view),
                ]
            })
            .collect();
        views.extend(undone);
        views.sort();
        views.dedup();
    }
    let fixed: Vec<Vec<u8>> = views.iter().flat_map(|view| decoded(view)).collect();
    let again: Vec<Vec<u8>> = fixed.iter().flat_map(|view| decoded(view)).collect();
    let mut all = views.iter().chain(&fixed).chain(&again);
    all.find(|view| {
        let parts = view.windows(TELLING);
        // A run of one byte does not count as a part.
        let varied = |part: &&[u8]| part.iter().any(|byte| *byte != part[0]);
        parts.filter(varied).any(|part| telling.contains(&part))
    })
    .cloned()
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let digits = std::str::from_utf8(rest.strip_prefix(b"%")?.get(..2)?).ok()?;
        Some((3, u8::from_str_radix(digits, 16).ok()?))
    })
}

fn json_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let rest = rest.strip_prefix(b"\\")?;
        let digits = |length| {
            let digits = std::str::from_utf8(rest.get(1..=length)?).ok()?;
            let byte = u8::try_from(u32::from_str_radix(digits, 16).ok()?).ok()?;
            Some((length + 2, byte))
        };
        match rest.first()? {
            b'u' => digits(4),
            b'x' => digits(2),
            b't' => Some((2, b'\t')),
            byte @ (b'"' | b'\\' | b'/' | b'\'') => Some((2, *byte)),
            _ => None,
        }
    })
}

fn html_decoded(text: &[u8]) -> Vec<u8> {
    undone(text, |rest| {
        let end = rest.iter().take(12).position(|byte| *byte == b';')?;
        let inner = std::str::from_utf8(rest.strip_prefix(b"&")?.get(..end - 1)?).ok()?;
        let byte = match inner.strip_prefix('#') {
            Some(number) => {
                let digits = number.strip_prefix(['x', 'X']);
                let value =
                    digits.map_or_else(|| number.parse(), |digits| u8::from_str_radix(digits, 16));
                value.ok()?
            }
            None => (0..128).find(|byte| name(*byte) == Some(inner))?,
        };
        Some((end + 1, byte))
    })
}

fn undone(text: &[u8], escape: impl Fn(&[u8]) -> Option<(usize, u8)>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (length, byte) = escape(&text[at..]).unwrap_or((1, text[at]));
        out.push(byte);
        at += length;
    }
    out
}

/// The words of a text, decoded from hexadecimal and base64, starting at each of their first
/// characters.
fn decoded(text: &[u8]) -> Vec<Vec<u8>> {
    let lenient = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let standard = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    let plain: Vec<u8> = text
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        })
        .collect();
    let mut all = Vec::new();
    let letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    for word in plain
        .split(|byte| !letter(byte))
        .filter(|word| word.len() > 7)
    {
        for start in 0..4 {
            let word = &word[start..];
            let word = if word.len() % 4 == 1 {
                &word[..word.len() - 1]
            } else {
                word
            };
            all.push(standard.decode(word).unwrap());
        }
    }
    for word in text
        .split(|byte| !byte.is_ascii_hexdigit())
        .filter(|word| word.len() > 7)
    {
        for start in 0..2 {
            let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap() as u8;
            let pairs = word[start..].chunks_exact(2);
            all.push(
                pairs
                    .map(|pair| digit(&pair[0]) << 4 | digit(&pair[1]))
                    .collect(),
            );
        }
    }
    all
}
