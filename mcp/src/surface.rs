//! What is served at one moment: a host and what clients see of it.
