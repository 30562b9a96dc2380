//! Finding tools in a large catalogue, and the tools that do it.
