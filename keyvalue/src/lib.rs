//! Key-value buckets of tools, kept in SQLite.
