//! IBANs: the country, two check digits, and an account in the country's own form.

use crate::bindings::exports::numbers::check::identifiers::{Iban, Problem};
use crate::{compact, unexpected, wrong};

/// Each country with the length of its IBANs: the registry of ISO 13616, without the
/// forms of accounts.
const COUNTRIES: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BR29 BY28 CH21 CR22 CY28 \
    CZ24 DE22 DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 \
    IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 \
    MK19 MR27 MT31 MU30 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SE24 SI19 SK24 \
    SM27 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20";

pub(crate) fn check(text: &str) -> Result<Iban, Problem> {
    let compact = compact(text).to_ascii_uppercase();
    if let Some(other) = compact.chars().find(|other| !other.is_ascii_alphanumeric()) {
        return Err(unexpected(other));
    }
    let country = compact.get(..2).unwrap_or(&compact);
    let length = length(country)
        .ok_or_else(|| Problem::Country(format!("{country:?} is not a country with IBANs")))?;
    if compact.len() != length {
        return Err(Problem::Length(format!(
            "an IBAN of {country} has {length} characters, this {}",
            compact.len()
        )));
    }
    let (head, account) = compact.split_at(4);
    // Those that fit account and country; some that don't leave the remainder 1, too.
    let right = 98 - remainder(&format!("{account}{country}00"));
    if head.get(2..) != Some(format!("{right:02}").as_str()) {
        return Err(wrong(format_args!("{right:02}")));
    }
    Ok(Iban {
        country: country.to_owned(),
        account: account.to_owned(),
        printed: in_fours(&compact),
    })
}

fn length(country: &str) -> Option<usize> {
    COUNTRIES.split(' ').find_map(|entry| {
        let (name, length) = entry.split_at(2);
        (name == country).then(|| length.parse().ok())?
    })
}

/// The remainder by 97, where a letter counts as two digits, `A` as 10.
fn remainder(text: &str) -> u32 {
    text.chars()
        .filter_map(|character| character.to_digit(36))
        .fold(0, |sum, value| match value {
            0..10 => (sum * 10 + value) % 97,
            _ => (sum * 100 + value) % 97,
        })
}

/// As it is printed, in groups of four.
fn in_fours(text: &str) -> String {
    let mut printed = String::new();
    for (place, character) in text.chars().enumerate() {
        if place > 0 && place % 4 == 0 {
            printed.push(' ');
        }
        printed.push(character);
    }
    printed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_iban_is_taken_apart() {
        let iban = check("gb82 west 1234 5698 7654 32").unwrap();
        assert_eq!(iban.country, "GB");
        assert_eq!(iban.account, "WEST12345698765432");
        assert_eq!(iban.printed, "GB82 WEST 1234 5698 7654 32");
    }

    #[test]
    fn one_changed_digit_is_found_and_the_check_digits_that_fit_are_told() {
        let problem = check("GB83 WEST 1234 5698 7654 32").unwrap_err();
        assert!(
            matches!(&problem, Problem::CheckDigits(right) if right.ends_with(" 82")),
            "{problem:?}"
        );
        let problem = check("DE88370400440532013000").unwrap_err();
        assert!(
            matches!(&problem, Problem::CheckDigits(right) if right.ends_with(" 89")),
            "{problem:?}"
        );
    }

    #[test]
    fn the_country_and_its_length_are_held_to() {
        assert!(matches!(check("US00 1234"), Err(Problem::Country(_))));
        assert!(matches!(check(""), Err(Problem::Country(_))));
        assert!(matches!(
            check("DE8937040044053201300"),
            Err(Problem::Length(_))
        ));
        assert!(matches!(
            check("DE89 3704 0044 0532 0130 é"),
            Err(Problem::Character(_))
        ));
    }
}
