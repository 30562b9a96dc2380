//! Figures of a set of numbers.

use serde::Serialize;
use serde_json::Number;
use toolward_guest::{Code, Error};

#[derive(Serialize)]
pub struct Figures {
    count: usize,
    sum: Number,
    mean: Number,
    min: Number,
    max: Number,
    median: Number,
}

/// Below it, every whole number has an exact form.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// The number that a cell holds: digits with an optional sign, point and
/// exponent; no names such as `nan` and `inf`, which Rust would take.
pub fn parse(cell: &str) -> Option<f64> {
    let numeric = cell.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && cell.ends_with(|last: char| last.is_ascii_digit() || last == '.');
    if !numeric {
        return None;
    }
    cell.parse().ok().filter(|number: &f64| number.is_finite())
}

impl Figures {
    /// Of all cells that hold numbers; none without any. A sum that no double
    /// holds is an error.
    pub fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Result<Option<Self>, Error> {
        let mut numbers: Vec<f64> = cells.filter_map(parse).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let count = numbers.len();
        let (Some(min), Some(max)) = (numbers.first(), numbers.last()) else {
            return Ok(None);
        };
        let middle = |at: usize| numbers.get(at).copied().unwrap_or_default();
        let (lower, upper) = (middle((count - 1) / 2), middle(count / 2));
        let sum = sum(&numbers);
        Ok(Some(Figures {
            count,
            sum: tidy(sum)?,
            mean: tidy(sum / count as f64)?,
            min: tidy(*min)?,
            max: tidy(*max)?,
            median: tidy(lower / 2.0 + upper / 2.0)?,
        }))
    }
}

/// Neumaier's sum: a long column of decimals loses no digits that it has.
fn sum(numbers: &[f64]) -> f64 {
    let mut sum = 0.0;
    let mut lost = 0.0;
    for &number in numbers {
        let next: f64 = sum + number;
        lost += if f64::abs(sum) >= number.abs() {
            (sum - next) + number
        } else {
            (number - next) + sum
        };
        sum = next;
    }
    sum + lost
}

/// Twelve significant digits, so that 0.1 + 0.2 is 0.3 to the reader, and no
/// point where nothing follows it.
fn tidy(number: f64) -> Result<Number, Error> {
    let number: f64 = format!("{number:.11e}").parse().unwrap_or(number);
    if number.fract() == 0.0 && number.abs() < MAX_WHOLE {
        return Ok(Number::from(number as i64));
    }
    Number::from_f64(number).code("csv:overflow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_numbers_are_numbers() {
        for (cell, number) in [
            ("1", 1.0),
            ("-2.5", -2.5),
            ("+.5", 0.5),
            ("1e3", 1000.0),
            ("3.", 3.0),
        ] {
            assert_eq!(parse(cell), Some(number), "{cell}");
        }
        for cell in [
            "", "nan", "inf", "-inf", "1,5", "0x10", "1_000", "12 EUR", "1e999", "-",
        ] {
            assert_eq!(parse(cell), None, "{cell}");
        }
    }

    #[test]
    fn decimals_sum_to_what_a_reader_expects() {
        let figures = Figures::of(["0.1", "0.2", "x"].into_iter())
            .unwrap()
            .unwrap();
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(
            text,
            r#"{"count":2,"sum":0.3,"mean":0.15,"min":0.1,"max":0.2,"median":0.15}"#
        );
        assert!(Figures::of(["x", ""].into_iter()).unwrap().is_none());
    }

    #[test]
    fn whole_figures_have_no_point() {
        let figures = Figures::of(["1.0", "2", "9"].into_iter()).unwrap().unwrap();
        let text = serde_json::to_string(&figures).unwrap();
        assert_eq!(
            text,
            r#"{"count":3,"sum":12,"mean":4,"min":1,"max":9,"median":2}"#
        );
    }

    #[test]
    fn a_sum_beyond_all_doubles_is_an_error() {
        let error = Figures::of(["1e308", "1e308"].into_iter())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.code(), "csv:overflow");
    }
}
