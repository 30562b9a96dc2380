//! The server: which request goes where.
