//! Attacks, a module for each: what was tried, the code it is refused with, and what stayed as it was.

mod algorithm_field_in_the_envelope;
mod archive_tricks;
mod envelope_for_another_payload_type;
mod equivocation;
mod example_key_in_a_trust_store;
mod expired;
mod fast_forward_and_recovery;
mod file_replaced_after_hashing;
mod foreign_prefix;
mod freeze;
mod longest_prefix_takeover;
mod mix_and_match;
mod not_yet_valid;
mod revoked_digest;
mod revoked_key;
mod rollback;
mod rotation_by_the_new_keys_only;
mod rotation_skipping_a_version;
mod sequence_of_a_stolen_key;
mod signature_over_other_bytes;
mod somebody_elses_revocation;
mod threshold_met_by_one_key_twice;
mod unknown_publisher;
mod unsigned;
mod weak_keys_and_signatures;
mod wrong_key;
