//! A file is replaced after its digest was compared and before it is used.

use toolward_signing::verify;

use crate::support::{Sample, acme, key, options};

const DRIVER: &str = "drivers/text-stats/driver.wasm";

#[test]
fn what_was_hashed_is_what_is_used_whatever_lies_at_its_path_by_then() {
    let signed = Sample::new().sign(&[&key(1)]);
    let directory = signed.directory();
    let bundle = verify::open(directory.path(), &acme(), &options()).unwrap();
    for path in [DRIVER, "manifest.toml", "tools.json"] {
        std::fs::write(directory.path().join(path), b"evil").unwrap();
    }
    assert_eq!(**bundle.file(DRIVER).unwrap(), *signed.files[DRIVER]);
    assert_eq!(*bundle.manifest_bytes, *signed.manifest);
    assert!(verify::open(directory.path(), &acme(), &options()).is_err());
}
