//! From a reply of the host to a result of the protocol.
