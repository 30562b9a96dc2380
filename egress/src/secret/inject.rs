//! Finds where values are injected into a request's head, and refuses every other placeholder
//! there. Values are loaded only after this check.

#[cfg(test)]
mod tests;

use http::header::{HeaderName, HeaderValue};
use toolward_contract::header::may_precede_secret;
use toolward_contract::url_path::{self, percent_decoded};

use super::placeholder::{LENGTH, Placeholders};
use crate::error::{Denied, Rule};
use crate::rules::{ReadPosition, RequestView, SecretPlace};

/// A value to inject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Injection {
    pub(crate) slug: String,
    pub(crate) position: ReadPosition,
    /// The text before the placeholder in a header, e.g. `Bearer `.
    pub(crate) prefix: Vec<u8>,
}

impl Injection {
    /// The header that this injection sets.
    pub(crate) fn header(&self) -> Option<&HeaderName> {
        match &self.position {
            ReadPosition::Header(name) => Some(name),
            ReadPosition::Query(_) => None,
        }
    }
}

/// Finds the placeholders of a request.
///
/// # Errors
/// The rule that the first misplaced placeholder breaks.
pub(crate) fn find(
    request: &RequestView<'_>,
    placeholders: &Placeholders,
    places: &[SecretPlace],
) -> Result<Vec<Injection>, Denied> {
    if !placeholders.any() {
        return Ok(Vec::new());
    }
    let authority = request.uri.authority().map_or("", |a| a.as_str());
    for text in [authority, request.uri.path()] {
        if let Some((_, slug)) = placeholders.find(text.as_bytes()) {
            return Err(Denied::new(Rule::SecretInUri, slug));
        }
    }
    let mut found = in_query(request, placeholders, places)?;
    for (name, value) in request.headers {
        if let Some((_, slug)) = placeholders.find(name.as_str().as_bytes()) {
            return Err(Denied::new(Rule::SecretInHeader, slug));
        }
        if let Some((start, slug)) = placeholders.find(value.as_bytes()) {
            found.push(in_header(request, places, (name, value), start, slug)?);
        }
    }
    Ok(found)
}

/// Finds the placeholders in the query. Each must be the whole value of one parameter, which occurs
/// once.
fn in_query(
    request: &RequestView<'_>,
    placeholders: &Placeholders,
    places: &[SecretPlace],
) -> Result<Vec<Injection>, Denied> {
    let query = request.uri.query().unwrap_or_default();
    let mut found: Vec<Injection> = Vec::new();
    for pair in query.split('&') {
        let Some((_, slug)) = placeholders.find(pair.as_bytes()) else {
            continue;
        };
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let whole =
            value.len() == LENGTH && matches!(placeholders.find(value.as_bytes()), Some((0, _)));
        let alone = names(query)
            .filter(|other| *other == percent_decoded(name.as_bytes()))
            .count()
            == 1;
        let known = found.iter().any(|injection| injection.slug == slug);
        if !whole || !alone || known {
            return Err(Denied::new(Rule::SecretInUri, slug));
        }
        let position = ReadPosition::Query(name.to_owned());
        allowed(request, places, &position, Rule::SecretInUri, &slug)?;
        found.push(Injection {
            slug,
            position,
            prefix: Vec::new(),
        });
    }
    Ok(found)
}

/// The names of the parameters in the ways that servers may read them. Some servers also separate
/// parameters by `;`.
fn names(query: &str) -> impl Iterator<Item = Vec<u8>> {
    query.split(['&', ';']).map(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        percent_decoded(name.as_bytes())
    })
}

fn in_header(
    request: &RequestView<'_>,
    places: &[SecretPlace],
    (name, value): (&HeaderName, &HeaderValue),
    start: usize,
    slug: String,
) -> Result<Injection, Denied> {
    let (before, rest) = value.as_bytes().split_at_checked(start).unwrap_or_default();
    let alone = request.headers.get_all(name).iter().count() == 1;
    if !alone || rest.len() != LENGTH || !may_precede_secret(name.as_str(), before) {
        return Err(Denied::new(Rule::SecretInHeader, slug));
    }
    let position = ReadPosition::Header(name.clone());
    allowed(request, places, &position, Rule::SecretInHeader, &slug)?;
    Ok(Injection {
        slug,
        position,
        prefix: before.to_vec(),
    })
}

/// Checks the places of one secret. One of them must match in every respect: position, origin,
/// method and path.
fn allowed(
    request: &RequestView<'_>,
    places: &[SecretPlace],
    position: &ReadPosition,
    misplaced: Rule,
    slug: &str,
) -> Result<(), Denied> {
    let path = request.uri.path();
    let mut left: Vec<&SecretPlace> = places.iter().filter(|p| p.slug == slug).collect();
    type Holds<'a> = &'a dyn Fn(&SecretPlace) -> bool;
    let here = |place: &SecretPlace| place.position == *position;
    let origin = |place: &SecretPlace| place.origin == *request.origin;
    let method = |place: &SecretPlace| place.methods.contains(request.method);
    let below = |place: &SecretPlace| url_path::is_below(path, &place.path_prefix);
    let rules: [(Rule, Holds<'_>); 4] = [
        (misplaced, &here),
        (Rule::SecretOrigin, &origin),
        (Rule::SecretMethod, &method),
        (Rule::SecretPath, &below),
    ];
    for (rule, holds) in rules {
        left.retain(|place| holds(place));
        if left.is_empty() {
            return Err(Denied::new(rule, slug));
        }
    }
    Ok(())
}
