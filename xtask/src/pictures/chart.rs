//! A curve as SVG: both axes logarithmic, with a dashed line for what would be linear.

use std::fmt::Write as _;

use super::svg::{FONTS, GROUND, TEXT, escaped, pixels};

/// In tenths of a pixel.
const WIDTH: usize = 3600;
const HEIGHT: usize = 2300;
/// The area of the curve.
const LEFT: usize = 560;
const RIGHT: usize = 3400;
const TOP: usize = 520;
const BOTTOM: usize = 1900;

const GRID: &str = "#3a424d";
const CURVE: &str = "#76e3ea";
const LINEAR: &str = "#e3b341";

/// What is drawn.
pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// Of the vertical axis.
    pub(crate) unit: &'a str,
    /// What the sizes count.
    pub(crate) counts: &'a str,
    /// Sizes, which rise, with their figures.
    pub(crate) points: Vec<(f64, f64)>,
}

/// The ends of an axis, as logarithms to base ten.
#[derive(Clone, Copy)]
struct Axis {
    least: f64,
    most: f64,
    /// Where they lie, in tenths of a pixel.
    from: usize,
    to: usize,
}

impl Axis {
    /// From the least value to the largest.
    fn exact(values: impl Iterator<Item = f64> + Clone, from: usize, to: usize) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        let [least, most] = [least, most].map(|end| end.clamp(1e-3, 1e12).log10());
        Self {
            least,
            // A single size has room, too.
            most: most.max(least + 0.1),
            from,
            to,
        }
    }

    /// From whole power of ten to whole power of ten, and at least one of them apart.
    fn whole(values: impl Iterator<Item = f64> + Clone, from: usize, to: usize) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        // A curve without points, or with a figure of zero, is drawn as far as it can be.
        let least = least.clamp(1e-3, 1e12).log10().floor();
        let most = most.clamp(1e-3, 1e12).log10().ceil();
        Self {
            least,
            most: most.max(least + 1.0),
            from,
            to,
        }
    }

    /// Where a value lies, in tenths of a pixel.
    fn tenths(self, value: f64) -> usize {
        let share = (value.max(1e-3).log10() - self.least) / (self.most - self.least);
        let (from, to) = (self.from as f64, self.to as f64);
        (from + share * (to - from)).round().max(0.0) as usize
    }

    fn place(self, value: f64) -> String {
        pixels(self.tenths(value))
    }

    /// The powers of ten on it.
    fn powers(self) -> impl Iterator<Item = f64> {
        let (least, most) = (self.least as i32, self.most as i32);
        (least..=most).map(|power| 10f64.powi(power))
    }
}

impl Chart<'_> {
    pub(crate) fn drawn(&self) -> String {
        let x = Axis::exact(self.points.iter().map(|(x, _)| *x), LEFT, RIGHT);
        let y = Axis::whole(self.points.iter().map(|(_, y)| *y), BOTTOM, TOP);
        let (width, height) = (pixels(WIDTH), pixels(HEIGHT));
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
             {height}\">\n\
             <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n\
             <g font-family=\"{FONTS}\" font-size=\"11\" fill=\"{TEXT}\">\n"
        );
        for (text, top) in title(self.title).iter().zip([170, 310]) {
            text_at(&mut out, ("16", &pixels(top)), "start", text);
        }
        self.grid(&mut out, x, y);
        for (at, anchor, text) in [
            ((RIGHT, HEIGHT - 90), "end", self.counts),
            ((LEFT - 60, TOP - 60), "end", self.unit),
        ] {
            text_at(&mut out, (&pixels(at.0), &pixels(at.1)), anchor, text);
        }
        self.linear(&mut out, x, y);
        let places: Vec<(String, String)> = self
            .points
            .iter()
            .map(|(size, figure)| (x.place(*size), y.place(*figure)))
            .collect();
        let line: Vec<String> = places.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{CURVE}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for (x, y) in &places {
            let _ = writeln!(
                out,
                "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{CURVE}\"/>"
            );
        }
        out.push_str("</g>\n</svg>\n");
        out
    }

    /// A line, and a number beside it, for each size and each power of ten.
    fn grid(&self, out: &mut String, x: Axis, y: Axis) {
        let line = |out: &mut String, [x1, y1, x2, y2]: [&str; 4]| {
            let _ = writeln!(
                out,
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{GRID}\"/>"
            );
        };
        let [left, right, top, bottom] = [LEFT, RIGHT, TOP, BOTTOM].map(pixels);
        for (size, _) in &self.points {
            let place = x.place(*size);
            line(out, [&place, &top, &place, &bottom]);
            text_at(
                out,
                (&place, &pixels(BOTTOM + 160)),
                "middle",
                &shown(*size),
            );
        }
        for power in y.powers() {
            let place = y.place(power);
            line(out, [&left, &place, &right, &place]);
            // The number's middle beside the line.
            let beside = (&*pixels(LEFT - 60), &*pixels(y.tenths(power) + 40));
            text_at(out, beside, "end", &shown(power));
        }
    }

    /// Where a curve that ends in the same point would lie, if it were linear.
    fn linear(&self, out: &mut String, x: Axis, y: Axis) {
        let (Some((first, _)), Some((last, figure))) = (self.points.first(), self.points.last())
        else {
            return;
        };
        // As far down as the area goes.
        let from = first.max(last * 10f64.powf(y.least) / figure.max(1e-3));
        let _ = writeln!(
            out,
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{LINEAR}\" stroke-dasharray=\"3 4\"/>",
            x.place(from),
            y.place(figure * from / last),
            x.place(*last),
            y.place(*figure)
        );
    }
}

fn text_at(out: &mut String, (x, y): (&str, &str), anchor: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
        escaped(text)
    );
}

/// A size or a power of ten, short.
fn shown(number: f64) -> String {
    match number {
        1e6.. => format!("{}M", number / 1e6),
        1e3.. => format!("{}k", number / 1e3),
        // Whole thousandths: what was computed may be a little beside them.
        _ => format!("{}", (number * 1e3).round() / 1e3),
    }
}

/// At most two lines of it, the first of at most so many letters as fit.
fn title(text: &str) -> [String; 2] {
    const COLUMNS: usize = 48;
    let mut lines = [String::new(), String::new()];
    let [first, second] = &mut lines;
    for word in text.split(' ') {
        let fits = second.is_empty() && first.chars().count() + word.chars().count() < COLUMNS;
        let line = if fits { &mut *first } else { &mut *second };
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> String {
        let chart = Chart {
            title: "calls <at once>",
            unit: "ms",
            counts: "calls",
            points: points.to_vec(),
        };
        chart.drawn()
    }

    #[test]
    fn a_linear_curve_lies_on_the_dashed_line() {
        let svg = chart(&[(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]);
        assert!(svg.contains("calls &lt;at once&gt;"), "{svg}");
        let curve = "<polyline points=\"56,190 198,121 340,52\"";
        assert!(svg.contains(curve), "{svg}");
        let line = "<line x1=\"56\" y1=\"190\" x2=\"340\" y2=\"52\" stroke=\"#e3b341\"";
        assert!(svg.contains(line), "{svg}");
        // Nothing from elsewhere.
        assert_eq!(svg.matches("://").count(), 1, "{svg}");
    }

    #[test]
    fn every_curve_can_be_drawn() {
        for points in [&[][..], &[(1.0, 0.0)], &[(5.0, 3.0), (6.0, 3.0)]] {
            let svg = chart(points);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_long_title_takes_two_lines() {
        let [first, second] = title(&"word ".repeat(12));
        assert!(first.chars().count() <= 48, "{first}");
        assert!(second.starts_with("word"), "{second}");
    }
}
