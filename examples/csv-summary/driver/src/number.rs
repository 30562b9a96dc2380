//! Figures of a set of numbers.

use serde::Serialize;

#[derive(Serialize)]
pub struct Figures {
    count: usize,
    sum: f64,
    mean: f64,
    min: f64,
    max: f64,
    median: f64,
}

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
    /// Of all cells that hold numbers; none without any.
    pub fn of<'a>(cells: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut numbers: Vec<f64> = cells.filter_map(parse).collect();
        numbers.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*numbers.first()?, *numbers.last()?);
        let count = numbers.len();
        let sum = sum(&numbers);
        let upper = *numbers.get(count / 2)?;
        let lower = *numbers.get((count - 1) / 2)?;
        Some(Figures {
            count,
            sum: tidy(sum),
            mean: tidy(sum / count as f64),
            min,
            max,
            median: tidy(lower + (upper - lower) / 2.0),
        })
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

/// Twelve significant digits, so that 0.1 + 0.2 is 0.3 to the reader.
fn tidy(number: f64) -> f64 {
    format!("{number:.11e}").parse().unwrap_or(number)
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
        let figures = Figures::of(["0.1", "0.2", "x"].into_iter()).unwrap();
        assert_eq!((figures.count, figures.sum, figures.mean), (2, 0.3, 0.15));
        assert!(Figures::of(["x", ""].into_iter()).is_none());
    }
}
