//! Whose bucket of which name.

/// Which bucket it is. Three columns in the store: nothing that stands in one of
/// them can reach into another.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) owner: String,
    pub(crate) principal: String,
    pub(crate) name: String,
}
