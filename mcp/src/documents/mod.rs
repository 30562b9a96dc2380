//! Prompts and resources that bundles ship.
