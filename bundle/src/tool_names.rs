//! Hints for unknown names of tools.

use toolward_support::fields::nearest;

/// Tools that a hint lists.
const MAX_NAMED: usize = 10;

/// The tool that a wrong name may mean, otherwise some of the known tools; `None` if none is known. A name without a
/// major version is compared with ids without one.
///
/// ```
/// use toolward_bundle::tool_names::hint;
///
/// let known = ["text.stats@1", "notes.append@2"];
/// assert_eq!(hint("text.stat", known).unwrap(), "did you mean `text.stats`?");
/// assert_eq!(hint("weather", known).unwrap(), "the tools are: text.stats@1, notes.append@2");
/// assert_eq!(hint("weather", []), None);
/// ```
pub fn hint<'i>(name: &str, major_ids: impl IntoIterator<Item = &'i str>) -> Option<String> {
    let ids: Vec<&str> = major_ids.into_iter().collect();
    if let Some(near) = near(name, ids.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let listed = ids.get(..MAX_NAMED).unwrap_or(&ids).join(", ");
    match ids.len() {
        0 => None,
        count if count <= MAX_NAMED => Some(format!("the tools are: {listed}")),
        _ => Some(format!("some of the tools are: {listed}")),
    }
}

/// The name that a wrong one may mean.
pub fn near<'i>(name: &str, known: impl IntoIterator<Item = &'i str>) -> Option<&'i str> {
    let plain = |id: &'i str| match name.contains('@') {
        true => id,
        false => id.split_once('@').map_or(id, |(id, _major)| id),
    };
    nearest(name, known.into_iter().map(plain))
}
