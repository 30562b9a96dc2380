//! The tools that clients see: names, descriptions, annotations.
