//! Asking the person behind a client: questions of drivers, and approvals.
