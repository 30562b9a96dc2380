#![no_main]
#![doc = "See the function of the same name in the library."]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    toolward_fuzz::cassette(data);
});
