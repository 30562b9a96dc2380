//! One call of a tool, from the request to the result.
