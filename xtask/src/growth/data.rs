//! What was measured, kept in a file of the book between runs.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::Measured;
use crate::{Outcome, repository};

/// The file, below the repository's root.
const FILE: &str = "docs/src/growth-data.json";

/// A size, and what was measured there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) size: usize,
    pub(super) figure: f64,
}

/// The points of each series, by its id.
#[derive(Default)]
pub(super) struct Data {
    series: BTreeMap<String, Vec<Point>>,
}

impl Data {
    /// Reads the file. Without one there are no series.
    pub(super) fn read(root: &Path) -> Outcome<Self> {
        let path = root.join(FILE);
        match path.exists() {
            true => Self::parse(&repository::read(&path)?),
            false => Ok(Self::default()),
        }
    }

    fn parse(text: &str) -> Outcome<Self> {
        let wrong = || format!("{FILE}: expected {{ID: [[SIZE, FIGURE], ...], ...}}");
        let value: Value = serde_json::from_str(text).map_err(|_| wrong())?;
        let mut series = BTreeMap::new();
        for (id, points) in value.as_object().ok_or_else(wrong)? {
            let points = points.as_array().ok_or_else(wrong)?;
            let points: Option<Vec<Point>> = points.iter().map(point).collect();
            series.insert(id.clone(), points.ok_or_else(wrong)?);
        }
        Ok(Self { series })
    }

    /// Puts points in place of those that their series had.
    pub(super) fn replace(&mut self, measured: Measured) {
        for (id, _) in &measured {
            self.series.remove(*id);
        }
        for (id, point) in measured {
            self.series.entry(id.to_owned()).or_default().push(point);
        }
    }

    pub(super) fn points(&self, id: &str) -> &[Point] {
        self.series.get(id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn write(&self, root: &Path) -> Outcome {
        let path = root.join(FILE);
        let written = std::fs::write(&path, self.text());
        written.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// One series on a line.
    fn text(&self) -> String {
        let lines = self.series.iter().map(|(id, points)| {
            let points = points
                .iter()
                .map(|point| json!([point.size, rounded(point.figure)]));
            format!("  {}: {}", json!(id), Value::Array(points.collect()))
        });
        format!("{{\n{}\n}}\n", lines.collect::<Vec<_>>().join(",\n"))
    }
}

fn point(value: &Value) -> Option<Point> {
    match value.as_array()?.as_slice() {
        [size, figure] => Some(Point {
            size: usize::try_from(size.as_u64()?).ok()?,
            figure: figure.as_f64()?,
        }),
        _ => None,
    }
}

/// To a thousandth.
fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_measured_anew_replaces_its_own_series_only() {
        let mut data = Data::parse(r#"{"a": [[1, 0.5], [10, 1.25]], "b": [[1, 2.0]]}"#).unwrap();
        let point = |size, figure| Point { size, figure };
        data.replace(vec![("a", point(2, 0.1234)), ("a", point(3, 4.0))]);
        assert_eq!(data.points("a"), [point(2, 0.1234), point(3, 4.0)]);
        assert_eq!(
            data.text(),
            "{\n  \"a\": [[2,0.123],[3,4.0]],\n  \"b\": [[1,2.0]]\n}\n"
        );
        for text in ["[]", r#"{"a": 1}"#, r#"{"a": [[1]]}"#] {
            assert!(Data::parse(text).is_err(), "{text}");
        }
    }
}
