//! Attacks, a module for each: what was tried, the code it is refused with, and what stayed as it was.

mod equivocation;
mod example_key_in_a_trust_store;
mod fast_forward_and_recovery;
mod freeze;
mod mix_and_match;
mod revoked_digest;
mod revoked_key;
mod rollback;
mod rotation_by_the_new_keys_only;
mod rotation_skipping_a_version;
mod sequence_of_a_stolen_key;
mod somebody_elses_revocation;
