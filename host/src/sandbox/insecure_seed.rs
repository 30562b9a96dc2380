//! `wasi:random/insecure-seed`, by itself: it is all that many guests in Rust ask WASI for, once for their hash
//! maps, and wasmtime-wasi would make two generators for each call to answer it.

use wasmtime_wasi::p2::bindings::random::insecure_seed;

/// The seed of one instance: the same each time that it asks.
#[derive(Debug, Default)]
pub(super) struct InsecureSeed(Option<(u64, u64)>);

impl wasmtime::component::HasData for InsecureSeed {
    type Data<'a> = &'a mut Self;
}

impl insecure_seed::Host for InsecureSeed {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        if let Some(seed) = self.0 {
            return Ok(seed);
        }
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        let both = u128::from_ne_bytes(bytes);
        let seed = (both as u64, (both >> 64) as u64);
        Ok(*self.0.insert(seed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_instance_keeps_its_seed_and_no_other_has_it() {
        use insecure_seed::Host as _;

        let mut seeds = HashSet::new();
        for _ in 0..1000 {
            let mut instance = InsecureSeed::default();
            let seed = instance.insecure_seed().unwrap();
            assert_eq!(instance.insecure_seed().unwrap(), seed);
            assert!(seeds.insert(seed.0) && seeds.insert(seed.1));
        }
    }
}
