//! Streamable HTTP: who may connect, and how much of it.
