//! Inputs of a contract that a request has no place for: they would be dropped silently. One rule for DRIVER.md and for
//! the transports of tools.json.

use super::{HttpCall, Mapping};
use crate::schema::Shape;

/// The first input that neither a placeholder nor the body sends, and that the driver does not say it drops.
pub(crate) fn unplaced<'s>(
    call: &HttpCall,
    mapping: &Mapping,
    dropped: &[String],
    inputs: &'s Shape,
) -> Option<&'s str> {
    if call.sends_whole_input() {
        return None;
    }
    let used = call.inputs();
    let placed = |name: &str| {
        let mut renamed = mapping
            .iter()
            .filter(|(_, source)| source.from == name)
            .peekable();
        match renamed.peek() {
            Some(_) => renamed.any(|(own, _)| used.contains(own)),
            None => used.contains(name),
        }
    };
    let mut names = inputs.names.iter().map(String::as_str);
    names.find(|name| !placed(name) && !dropped.iter().any(|own| own == name))
}
