//! Lowest and highest numbers, lengths and counts.

use serde_json::Value;

use super::place::Place;
use super::{Comparison, What};

/// What a bound measures.
#[derive(Clone, Copy)]
enum Measure {
    Number,
    Length,
    Items,
    Properties,
}

/// A keyword and its strict form.
type Keyword = (&'static str, Option<&'static str>);

/// The lower and the upper keyword, and what they measure.
const BOUNDS: [(Keyword, Keyword, Measure); 4] = [
    (
        ("minimum", Some("exclusiveMinimum")),
        ("maximum", Some("exclusiveMaximum")),
        Measure::Number,
    ),
    (("minLength", None), ("maxLength", None), Measure::Length),
    (("minItems", None), ("maxItems", None), Measure::Items),
    (
        ("minProperties", None),
        ("maxProperties", None),
        Measure::Properties,
    ),
];

impl Measure {
    fn types(self) -> &'static [&'static str] {
        match self {
            Self::Number => &["number", "integer"],
            Self::Length => &["string"],
            Self::Items => &["array"],
            Self::Properties => &["object"],
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "no text of a contract is as long"
    )]
    fn of(self, value: &Value) -> Option<f64> {
        match self {
            Self::Number => value.as_f64(),
            Self::Length => value.as_str().map(|text| text.chars().count() as f64),
            Self::Items => value.as_array().map(|items| items.len() as f64),
            Self::Properties => value.as_object().map(|members| members.len() as f64),
        }
    }
}

/// A bound: the value, and whether the value itself is out.
type Bound = (f64, bool);

/// The stricter of a keyword and its strict form. `sign` is 1 for lower bounds and -1 for upper ones.
fn bound(place: &Place<'_>, keyword: &str, strict: Option<&str>, sign: f64) -> Option<Bound> {
    let number = |keyword: &str| place.get(keyword).and_then(Value::as_f64);
    let own = number(keyword).map(|value| (value, false));
    let strict = strict.and_then(number).map(|value| (value, true));
    match (own, strict) {
        (Some(own), Some(strict)) => Some(if is_tighter(strict, own, sign) {
            strict
        } else {
            own
        }),
        (own, strict) => own.or(strict),
    }
}

fn is_tighter(one: Bound, other: Bound, sign: f64) -> bool {
    let (a, b) = (one.0 * sign, other.0 * sign);
    a > b || a == b && one.1 && !other.1
}

fn is_within(value: f64, bound: Bound, sign: f64) -> bool {
    let (value, least) = (value * sign, bound.0 * sign);
    value > least || value == least && !bound.1
}

impl<'s> Comparison<'s> {
    pub(super) fn bounds(&mut self, inner: &Place<'s>, outer: &Place<'s>) {
        for (lower, upper, measure) in BOUNDS {
            if !inner.may_be(measure.types()) {
                continue;
            }
            for ((keyword, strict), sign) in [(lower, 1.0), (upper, -1.0)] {
                let Some(limit) = bound(outer, keyword, strict, sign) else {
                    continue;
                };
                let counted = !matches!(measure, Measure::Number);
                let fits = match inner.values() {
                    Some(values) => {
                        let mut measured = values.into_iter().filter_map(|value| measure.of(value));
                        measured.all(|value| is_within(value, limit, sign))
                    }
                    // Nothing is shorter than nothing.
                    None if counted && sign > 0.0 && limit.0 <= 0.0 => true,
                    None => bound(inner, keyword, strict, sign)
                        .is_some_and(|own| !is_tighter(limit, own, sign)),
                };
                if !fits {
                    self.add(inner, outer, What::Bound(keyword));
                }
            }
        }
        let unique = |place: &Place<'_>| place.get("uniqueItems") == Some(&Value::Bool(true));
        if inner.may_be(&["array"]) && unique(outer) && !unique(inner) {
            self.add(inner, outer, What::Bound("uniqueItems"));
        }
    }
}
