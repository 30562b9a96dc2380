//! Lines of a terminal as SVG: text on a dark ground, without a font or anything else from outside.

use std::fmt::Write as _;

use super::screen::{Colour, Span, Style};

/// In tenths of a pixel, so that no rounding differs between machines.
const COLUMN: usize = 84;
const LINE: usize = 190;
const MARGIN: usize = 160;
/// From the top of a line to its baseline.
const BASELINE: usize = 140;

pub(super) const GROUND: &str = "#1c2128";
pub(super) const TEXT: &str = "#d7dde4";
pub(super) const FONTS: &str = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace";

pub(super) fn drawn(lines: &[Vec<Span>], columns: usize) -> String {
    let (width, height) = (
        pixels(columns * COLUMN + 2 * MARGIN),
        pixels(lines.len() * LINE + 2 * MARGIN),
    );
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n\
         <g font-family=\"{FONTS}\" font-size=\"14\" fill=\"{TEXT}\" style=\"white-space: pre\" \
         xml:space=\"preserve\">\n"
    );
    for (number, spans) in lines.iter().enumerate() {
        let mut column = 0;
        let y = pixels(MARGIN + number * LINE + BASELINE);
        for span in spans {
            let length = span.text.chars().count();
            // Where a line has a font with other widths, its letters are still in their columns.
            let _ = writeln!(
                out,
                "<text x=\"{}\" y=\"{y}\" textLength=\"{}\"{}>{}</text>",
                pixels(MARGIN + column * COLUMN),
                pixels(length * COLUMN),
                look(span.style),
                escaped(&span.text)
            );
            column += length;
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

pub(super) fn pixels(tenths: usize) -> String {
    match tenths % 10 {
        0 => format!("{}", tenths / 10),
        rest => format!("{}.{rest}", tenths / 10),
    }
}

fn look(style: Style) -> String {
    let mut look = String::new();
    if let Some(colour) = style.colour {
        let colour = match colour {
            Colour::Red => "#ff7b72",
            Colour::Green => "#7ee787",
            Colour::Yellow => "#e3b341",
            Colour::Cyan => "#76e3ea",
        };
        let _ = write!(look, " fill=\"{colour}\"");
    }
    if style.bold {
        look.push_str(" font-weight=\"bold\"");
    }
    if style.underlined {
        look.push_str(" text-decoration=\"underline\"");
    }
    look
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_stands_in_its_column() {
        let span = |text: &str, style| Span {
            style,
            text: text.to_owned(),
        };
        let red = Style {
            bold: true,
            colour: Some(Colour::Red),
            ..Style::default()
        };
        let svg = drawn(
            &[vec![span("<a & b>", Style::default()), span("no", red)]],
            80,
        );
        assert!(
            svg.contains("<text x=\"16\" y=\"30\" textLength=\"58.8\">&lt;a &amp; b&gt;</text>"),
            "{svg}"
        );
        let second = "<text x=\"74.8\" y=\"30\" textLength=\"16.8\" fill=\"#ff7b72\" font-weight=\"bold\">no</text>";
        assert!(svg.contains(second), "{svg}");
        // Nothing from elsewhere.
        assert_eq!(svg.matches("://").count(), 1, "{svg}");
        assert!(!svg.contains("href") && !svg.contains("@import"), "{svg}");
    }
}
