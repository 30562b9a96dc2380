//! A driver that abuses its buckets: raw `wasi:keyvalue`, beside all that the
//! common hostile behaviours do.

mod buckets;

use hostile_common::did;

hostile_common::driver!(|_, input| {
    if input.what == "hoard-kv" {
        return Some(did(input, buckets::hoard(input)));
    }
    if input.what != "kv" {
        return None;
    }
    let value = input.typed().and_then(|op| buckets::act(&op));
    Some(value.and_then(|value| did(input, value)))
});
