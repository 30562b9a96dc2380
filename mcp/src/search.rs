//! Finding tools in a large catalogue: the three tools of the server's own
//! through which a client finds, loads and calls the others.

mod finder;
mod reference;
mod schemas;

pub(crate) use finder::{Asked, Finder, tools};
