//! Outgoing HTTP under rules: hosts, addresses, headers, secrets, sizes.
