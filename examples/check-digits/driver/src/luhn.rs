//! The Luhn digit of ISO/IEC 7812, which ends numbers of cards and phones.

use crate::bindings::exports::numbers::check::identifiers::Problem;
use crate::{compact, digit};

/// The most digits that such a number may have.
const MAX_DIGITS: usize = 64;

/// The digit to append to `digits`.
pub(crate) fn digit_for(digits: &str) -> Result<u8, Problem> {
    let digits = compact(digits);
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return Err(Problem::Length(format!(
            "1 to {MAX_DIGITS} digits can be continued"
        )));
    }
    let mut sum = 0;
    for (place, character) in digits.chars().rev().enumerate() {
        let value = digit(character)?;
        sum += match place % 2 {
            // Doubled, and its digits added where it has two.
            0 => value * 2 - if value > 4 { 9 } else { 0 },
            _ => value,
        };
    }
    Ok(((10 - sum % 10) % 10) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digit_that_is_appended_passes_the_test() {
        for (digits, last) in [("7992739871", 3), ("4111 1111 1111 111", 1), ("0", 0)] {
            assert!(
                matches!(digit_for(digits), Ok(found) if found == last),
                "{digits}"
            );
        }
    }

    #[test]
    fn only_digits_have_one() {
        assert!(matches!(digit_for(""), Err(Problem::Length(_))));
        assert!(matches!(digit_for("12x"), Err(Problem::Character(_))));
        assert!(matches!(
            digit_for(&"1".repeat(65)),
            Err(Problem::Length(_))
        ));
    }
}
