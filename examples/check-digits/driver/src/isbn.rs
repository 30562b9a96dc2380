//! ISBNs: ten digits until 2006, thirteen since.

use crate::bindings::exports::numbers::check::identifiers::{Isbn, Problem};
use crate::{compact, digit, wrong};

/// What was put before the ten digits to make thirteen.
const PREFIX: &str = "978";

pub(crate) fn check(text: &str) -> Result<Isbn, Problem> {
    let compact = compact(text);
    let Some((last, body)) = split(&compact) else {
        return Err(Problem::Length("an ISBN has 10 or 13 digits".to_owned()));
    };
    let right = match body.chars().count() {
        9 => last_of_ten(body)?,
        12 => last_of_thirteen(body)?,
        _ => return Err(Problem::Length("an ISBN has 10 or 13 digits".to_owned())),
    };
    if last.to_ascii_uppercase() != right {
        return Err(wrong(right));
    }
    if body.len() == 9 {
        let body = format!("{PREFIX}{body}");
        let isbn13 = format!("{body}{}", last_of_thirteen(&body)?);
        let isbn10 = Some(compact.to_ascii_uppercase());
        return Ok(Isbn { isbn13, isbn10 });
    }
    let isbn10 = match body.strip_prefix(PREFIX) {
        Some(body) => Some(format!("{body}{}", last_of_ten(body)?)),
        None if body.starts_with("979") => None,
        None => {
            let begins = "13 digits of an ISBN begin with 978 or 979".to_owned();
            return Err(Problem::Character(begins));
        }
    };
    Ok(Isbn {
        isbn13: compact,
        isbn10,
    })
}

/// The last character, and those before it.
fn split(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let last = characters.next_back()?;
    Some((last, characters.as_str()))
}

/// Weights 10 to 2, modulo 11; ten is written `X`.
fn last_of_ten(body: &str) -> Result<char, Problem> {
    let mut sum = 0;
    for (weight, character) in (2..=10).rev().zip(body.chars()) {
        sum += weight * digit(character)?;
    }
    Ok(char::from_digit((11 - sum % 11) % 11, 10).unwrap_or('X'))
}

/// Weights 1 and 3 by turns, modulo 10.
fn last_of_thirteen(body: &str) -> Result<char, Problem> {
    let mut sum = 0;
    for (weight, character) in [1, 3].into_iter().cycle().zip(body.chars()) {
        sum += weight * digit(character)?;
    }
    Ok(char::from_digit((10 - sum % 10) % 10, 10).unwrap_or('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_give_both_forms() {
        for text in ["0-306-40615-2", "978-0-306-40615-7"] {
            let isbn = check(text).unwrap();
            assert_eq!(isbn.isbn13, "9780306406157");
            assert_eq!(isbn.isbn10.as_deref(), Some("0306406152"));
        }
        let isbn = check("080442957x").unwrap();
        assert_eq!(isbn.isbn10.as_deref(), Some("080442957X"));
        assert_eq!(check("979-10-90636-07-1").unwrap().isbn10, None);
    }

    #[test]
    fn a_slip_is_found_and_the_digit_that_fits_is_told() {
        let problem = check("978-0-306-40615-8").unwrap_err();
        assert!(
            matches!(&problem, Problem::CheckDigits(right) if right.ends_with(" 7")),
            "{problem:?}"
        );
        let problem = check("0-8044-2957-1").unwrap_err();
        assert!(
            matches!(&problem, Problem::CheckDigits(right) if right.ends_with(" X")),
            "{problem:?}"
        );
    }

    #[test]
    fn what_is_not_an_isbn_is_refused() {
        for text in ["", "1", "97803064061", "é"] {
            assert!(matches!(check(text), Err(Problem::Length(_))), "{text}");
        }
        for text in ["97803064061é7", "0-306-4061a-2"] {
            assert!(matches!(check(text), Err(Problem::Character(_))), "{text}");
        }
        // A number of goods, whose check digit is right.
        assert!(matches!(check("4006381333931"), Err(Problem::Character(_))));
    }
}
