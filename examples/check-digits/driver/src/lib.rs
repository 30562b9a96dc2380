//! Check digits of IBANs, ISBNs, and numbers with a Luhn digit. A component with functions
//! of its own, as any host of components calls them: nothing here is Toolward's.

mod iban;
mod isbn;
mod luhn;

mod bindings {
    wit_bindgen::generate!({ world: "checker" });
}

use bindings::exports::numbers::check::identifiers::{Guest, Iban, Isbn, Problem};

struct Component;

bindings::export!(Component with_types_in bindings);

impl Guest for Component {
    fn check_iban(text: String) -> Result<Iban, Problem> {
        iban::check(&text)
    }

    fn check_isbn(text: String) -> Result<Isbn, Problem> {
        isbn::check(&text)
    }

    fn luhn_digit(digits: String) -> Result<u8, Problem> {
        luhn::digit_for(&digits)
    }
}

/// The characters that count: people write spaces and hyphens between them.
fn compact(text: &str) -> String {
    let counts = |character: &char| !matches!(character, ' ' | '-');
    text.chars().filter(counts).collect()
}

/// A digit's value.
fn digit(character: char) -> Result<u32, Problem> {
    character.to_digit(10).ok_or_else(|| unexpected(character))
}

fn unexpected(character: char) -> Problem {
    Problem::Character(format!("{character:?} is not a character of such a number"))
}

/// That other check digits would fit.
fn wrong(right: impl std::fmt::Display) -> Problem {
    Problem::CheckDigits(format!("the check digits would be {right}"))
}
