//! The common escapes, decoded in one step without the general reader.

use super::reading::{Reading, may_escape};
use super::single_escape::{digit, pair, simple};

const NONE: Reading = Reading { next: 0, byte: 0 };

/// How the start of `text` can be read beside the byte itself, and in how many ways.
/// `None`: that takes a look at the whole (`readings.rs`).
#[inline]
pub(super) fn read(text: &[u8]) -> Option<([Reading; 3], usize)> {
    match text {
        [b'%', rest @ ..] => percent(rest),
        [b'\\', rest @ ..] => backslash(rest),
        [b'&', rest @ ..] => reference(rest),
        [_, ..] => Some(none()),
        [] => None,
    }
}

fn none() -> ([Reading; 3], usize) {
    ([NONE; 3], 0)
}

/// One escape that stands for this character, if it begins no other.
#[inline]
fn one(next: usize, value: u32) -> Option<([Reading; 3], usize)> {
    let reading = Reading::ascii(next, value)?;
    (!may_escape(reading.byte)).then_some(([reading, NONE, NONE], 1))
}

#[inline]
fn percent(rest: &[u8]) -> Option<([Reading; 3], usize)> {
    let itself = Reading {
        next: 3,
        byte: b'%',
    };
    match rest {
        [b'2', b'5', high, low, ..] => match Reading::ascii(5, pair(*high, *low)) {
            Some(reading) => Some(([itself, reading, NONE], 2)),
            // Not a digit, independent of what follows.
            None if [*high, *low] == *b"%2" && rest.get(4) == Some(&b'5') => {
                Some(([itself, NONE, NONE], 1))
            }
            None => None,
        },
        // The second one may begin an escape, but of no digit.
        [b'%', third, ..] if *third != b'3' && *third != b'4' && *third != b'6' => Some(none()),
        [high, low, ..] => one(3, pair(*high, *low)),
        _ => None,
    }
}

#[inline]
fn backslash(rest: &[u8]) -> Option<([Reading; 3], usize)> {
    let itself = |next| Reading { next, byte: b'\\' };
    match rest {
        [b'\\', b'\\', b'\\', ..] => Some(([itself(2), itself(3), itself(4)], 3)),
        [b'\\', b'\\', fourth, ..] if is_short(*fourth) => {
            Some(match simple(*fourth).and_then(simple) {
                Some(byte) => ([itself(2), itself(3), Reading { next: 4, byte }], 3),
                None => ([itself(2), itself(3), NONE], 2),
            })
        }
        [b'\\', third, ..] if is_short(*third) => Some(match simple(*third) {
            Some(byte) => ([itself(2), Reading { next: 3, byte }, NONE], 2),
            None => ([itself(2), NONE, NONE], 1),
        }),
        [b'\\', b'u', b'0', b'0', high, low, ..] => {
            let reading = Reading::ascii(7, pair(*high, *low))?;
            // The first backslash may go on with the second's character.
            let ends = is_short(reading.byte) && simple(reading.byte).is_none();
            ends.then_some(([itself(2), reading, NONE], 2))
        }
        [b'u', b'0', b'0', high, low, ..] => one(6, pair(*high, *low)),
        [b'x', high, low, ..] => one(4, pair(*high, *low)),
        [letter, ..] => one(2, u32::from(simple(*letter)?)),
        [] => None,
    }
}

/// Whether this ends an escape with a backslash, or is not part of one.
#[inline]
fn is_short(byte: u8) -> bool {
    !may_escape(byte) && byte != b'u' && byte != b'x'
}

#[inline]
fn reference(rest: &[u8]) -> Option<([Reading; 3], usize)> {
    // The second is the one without `;`.
    let named = |byte, next| {
        Some((
            [
                Reading { next, byte },
                Reading {
                    next: next - 1,
                    byte,
                },
                NONE,
            ],
            2,
        ))
    };
    match rest {
        [b'#', b'x', high, low, b';', ..] => one(6, pair(*high, *low)),
        [b'#', tens, ones, b';', ..] => one(5, digit(*tens, 10)? * 10 + digit(*ones, 10)?),
        [b'#', b'1', tens, ones, b';', ..] => {
            one(6, 100 + digit(*tens, 10)? * 10 + digit(*ones, 10)?)
        }
        [b'l', b't', b';', ..] => named(b'<', 4),
        [b'g', b't', b';', ..] => named(b'>', 4),
        [b'q', b'u', b'o', b't', b';', ..] => named(b'"', 6),
        // No name but `num` stands for what a reference goes on with.
        [b'a', b'm', b'p', b';', b'&', letter, ..]
            if letter.is_ascii_alphabetic() && *letter != b'n' =>
        {
            named(b'&', 5)
        }
        _ => None,
    }
}
