//! The page of the book: its table and its pictures.

use std::path::Path;

use super::data::{Data, Point};
use super::fit;
use super::series::{self, Counts, Series};
use crate::pictures::chart::Chart;
use crate::{Outcome, repository};

const PAGE: &str = "docs/src/growth.md";
const BEGIN: &str = "<!-- growth:begin -->\n";
const END: &str = "<!-- growth:end -->";

const STEEPER: &str = "steeper";
/// The same with a link to where the page says why.
const STEEPER_LINKED: &str = "steeper, [why](#what-is-not-linear)";

/// What was measured, as SVG: the pictures' names and their texts.
pub(crate) fn pictures(root: &Path) -> Outcome<Vec<(String, String)>> {
    Ok(drawn(&Data::read(root)?))
}

fn drawn(data: &Data) -> Vec<(String, String)> {
    let series = measured(data).map(|(series, points)| {
        let chart = Chart {
            title: &series.title.replace('`', ""),
            unit: series.unit.name(),
            counts: series.counts.name().trim_start(),
            points: points
                .iter()
                .map(|point| (point.size as f64, point.figure))
                .collect(),
        };
        (picture(series), chart.drawn())
    });
    series.collect()
}

/// Writes the table and the pictures.
pub(super) fn write(root: &Path, data: &Data) -> Outcome {
    let path = root.join(PAGE);
    let text = with_table(&repository::read(&path)?, &generated(data))?;
    let written = std::fs::write(&path, text);
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    crate::pictures::run(false)
}

/// The page with this between its marks.
fn with_table(page: &str, generated: &str) -> Outcome<String> {
    let parts = page.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) =
        parts.ok_or_else(|| format!("{PAGE}: no lines {} and {END}", BEGIN.trim_end()))?;
    Ok(format!("{before}{BEGIN}{generated}{END}{after}"))
}

/// How many are linear, the table, and below it the pictures.
fn generated(data: &Data) -> String {
    let all = measured(data).count();
    let is_linear =
        |(series, points): &(&Series, &[Point])| Row::of(series, points).verdict != STEEPER;
    let linear = measured(data).filter(is_linear).count();
    let mut out = format!(
        "{linear} of {all} series are linear or better.\n\n\
         | what | sizes | figures | exponent | |\n|---|---|---|---|---|\n"
    );
    for (series, points) in measured(data) {
        let mut row = Row::of(series, points);
        if row.verdict == STEEPER {
            row.verdict = STEEPER_LINKED;
        }
        out += &format!(
            "| {} | {} | {} | {} | {} |\n",
            series.title, row.sizes, row.figures, row.exponent, row.verdict
        );
    }
    out.push('\n');
    for (series, _) in measured(data) {
        let title = series.title.replace('`', "");
        out += &format!("![{title}: a curve](pictures/{}.svg)\n", picture(series));
    }
    out
}

/// Prints the series of a part.
pub(super) fn print(data: &Data, part: &str) {
    for (series, points) in measured(data).filter(|(series, _)| series.part == part) {
        let row = Row::of(series, points);
        println!(
            "\n{} (exponent {}: {})",
            series.title, row.exponent, row.verdict
        );
        for point in points {
            let (size, figure) = (sized(series.counts, point.size), figure(point.figure));
            println!("{size:>16} {figure:>12} {}", series.unit.name());
        }
    }
    println!();
}

fn measured(data: &Data) -> impl Iterator<Item = (&'static Series, &[Point])> {
    let all = series::ALL.iter();
    let all = all.map(|series| (series, data.points(series.id)));
    all.filter(|(_, points)| !points.is_empty())
}

fn picture(series: &Series) -> String {
    format!("growth-{}", series.id)
}

/// What the table says of a series.
struct Row {
    sizes: String,
    figures: String,
    exponent: String,
    verdict: &'static str,
}

impl Row {
    fn of(series: &Series, points: &[Point]) -> Self {
        let sizes: Vec<String> = points.iter().map(|point| grouped(point.size)).collect();
        let figures: Vec<String> = points.iter().map(|point| figure(point.figure)).collect();
        let exponent = fit::exponent(points);
        Self {
            sizes: format!("{}{}", sizes.join(" · "), series.counts.name()),
            figures: format!("{} {}", figures.join(" · "), series.unit.name()),
            exponent: exponent.map_or_else(String::new, |exponent| {
                // Without the sign of a zero.
                let hundredths = (exponent * 100.0).round() / 100.0 + 0.0;
                format!("{hundredths:.2}").replace('-', "−")
            }),
            verdict: match exponent {
                Some(exponent) if exponent <= fit::LINEAR => "linear or better",
                Some(_) => STEEPER,
                None => "one size only",
            },
        }
    }
}

fn sized(counts: Counts, size: usize) -> String {
    format!("{}{}", grouped(size), counts.name())
}

/// With commas between thousands.
fn grouped(number: usize) -> String {
    match number {
        ..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

/// With three digits that count.
fn figure(figure: f64) -> String {
    match figure {
        ..1.0 => format!("{figure:.3}"),
        ..10.0 => format!("{figure:.2}"),
        ..100.0 => format!("{figure:.1}"),
        _ => grouped(figure.round() as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = format!("a\n{BEGIN}old\n{END}\nb\n");
        let new = with_table(&page, "new\n").unwrap();
        assert_eq!(new, format!("a\n{BEGIN}new\n{END}\nb\n"));
        with_table("a\n", "new\n").unwrap_err();
    }

    #[test]
    fn figures_have_three_digits() {
        for (number, shown) in [
            (0.0421, "0.042"),
            (1.234, "1.23"),
            (56.78, "56.8"),
            (1234.5, "1,235"),
            (1_000_000.0, "1,000,000"),
        ] {
            assert_eq!(figure(number), shown);
        }
    }
}
