//! What a driver says while it runs, sent to the client.
