//! How steep a curve is.

use super::data::Point;

/// Up to this exponent a curve counts as linear: two runs differ by as much.
pub(super) const LINEAR: f64 = 1.1;

/// The exponent of growth: the slope of a straight line through the larger half of the points, at least two, where
/// both axes are logarithmic. `None` where no two sizes differ.
pub(super) fn exponent(points: &[Point]) -> Option<f64> {
    let from = points.len() - points.len().div_ceil(2).max(2).min(points.len());
    let points: Vec<(f64, f64)> = points
        .iter()
        .skip(from)
        // A time of less than a microsecond is none.
        .map(|point| ((point.size as f64).ln(), point.figure.max(1e-3).ln()))
        .collect();
    let count = points.len() as f64;
    let x_mean = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let y_mean = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let slope = points
        .iter()
        .map(|(x, y)| (x - x_mean) * (y - y_mean))
        .sum::<f64>();
    (spread > 0.0).then(|| slope / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(figure: impl Fn(f64) -> f64) -> f64 {
        let points = [1, 10, 100, 1_000, 10_000].map(|size| Point {
            size,
            figure: figure(size as f64),
        });
        exponent(&points).unwrap()
    }

    #[test]
    fn powers_have_their_exponents_whatever_small_sizes_cost() {
        assert!((of(|size| 3.0 * size) - 1.0).abs() < 1e-9);
        assert!((of(|size| size * size) - 2.0).abs() < 1e-9);
        assert!(of(|_| 7.0).abs() < 1e-9);
        let offset = of(|size| 50.0 + size * size);
        assert!((offset - 2.0).abs() < 0.01, "{offset}");
    }

    #[test]
    fn fewer_than_two_sizes_have_none() {
        assert_eq!(exponent(&[]), None);
        let point = Point {
            size: 5,
            figure: 1.0,
        };
        assert_eq!(exponent(&[point]), None);
    }
}
