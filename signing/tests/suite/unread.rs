//! An installed bundle whose components are left unread: everything else is verified, and a component
//! is verified when it is read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use toolward_signing::archive::{Contents, to_stored_bytes};
use toolward_signing::manifest::FileDigest;
use toolward_signing::verify::{self, Bundle, ReopenFn, Verified};
use toolward_signing::{Digest, Refusal};

use crate::support::{Sample, Signed, acme, key, options, same};

const DRIVER: &str = "drivers/text-stats/driver.wasm";

/// A sample whose component has three blocks of the frame.
fn sample() -> Sample {
    let mut sample = Sample::new();
    sample.files.get_mut(DRIVER).unwrap().resize(300_000, 7);
    sample
}

fn stored(signed: &Signed) -> Vec<u8> {
    let files = signed.files.iter();
    to_stored_bytes(&Contents {
        envelope: &signed.envelope,
        manifest: &signed.manifest,
        provenance: signed.provenance.as_deref(),
        files: files
            .map(|(path, bytes)| (path.parse().unwrap(), bytes.as_slice()))
            .collect(),
    })
}

struct Object {
    directory: TempDir,
    path: PathBuf,
}

impl Object {
    fn new(bytes: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("object");
        std::fs::write(&path, bytes).unwrap();
        Self { directory, path }
    }

    fn verify(&self) -> Result<Verified<Bundle>, Refusal> {
        let mut file = File::open(&self.path).unwrap();
        let digest = Digest::of(&sample().files[DRIVER]);
        let known = move |file: &FileDigest| (file.blake3 == digest).then(|| Arc::from(*b"facts"));
        let path = self.path.clone();
        let reopen: Arc<ReopenFn> = Arc::new(move || File::open(&path));
        verify::stored_file(&mut file, &acme(), &options(), &known, &reopen)
    }

    /// Writes in place.
    fn overwrite(&self, place: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.path).unwrap();
        file.write_all_at(bytes, place).unwrap();
    }
}

/// The first byte of the component in the object.
fn component_in(bytes: &[u8]) -> usize {
    let start = &sample().files[DRIVER][..64];
    bytes.windows(64).position(|found| found == start).unwrap()
}

fn whole(path: &Path) -> Verified<Bundle> {
    verify::archive_file(&mut File::open(path).unwrap(), &acme(), &options()).unwrap()
}

#[test]
fn only_a_known_component_is_left_unread_and_it_reads_as_verified() {
    let object = Object::new(&stored(&sample().sign(&[&key(1)])));
    let bundle = object.verify().unwrap();
    let whole = whole(&object.path);
    assert_eq!(bundle.unread.len(), 1);
    assert_eq!(bundle.files.len() + 1, whole.files.len());
    for (path, bytes) in &bundle.files {
        assert_eq!(whole.files[path], *bytes);
    }
    let unread = &bundle.unread[DRIVER];
    assert_eq!(unread.facts(), b"facts");
    assert_eq!(Some(unread.expected()), bundle.manifest.entry(DRIVER));
    assert_eq!(unread.read().unwrap(), whole.files[DRIVER]);
    let again = verify::again(&bundle, &acme(), &options()).unwrap();
    assert_eq!(again.unread[DRIVER].read().unwrap(), whole.files[DRIVER]);

    assert_eq!(bundle.contents().unwrap_err().code(), "file-missing");
    whole.contents().unwrap();
}

#[test]
fn a_component_that_changes_after_the_start_is_refused_when_it_is_read() {
    let bytes = stored(&sample().sign(&[&key(1)]));
    let object = Object::new(&bytes);
    let bundle = object.verify().unwrap();
    let place = component_in(&bytes) as u64;
    object.overwrite(place + 20_000, b"other code");
    let refusal = bundle.unread[DRIVER].read().unwrap_err();
    assert_eq!(refusal.code(), "digest-mismatch");
    object.overwrite(0, &bytes);
    bundle.unread[DRIVER].read().unwrap();
    let file = File::options().write(true).open(&object.path).unwrap();
    file.set_len(place + 1000).unwrap();
    bundle.unread[DRIVER].read().unwrap_err();
    std::fs::remove_file(&object.path).unwrap();
    let refusal = bundle.unread[DRIVER].read().unwrap_err();
    assert_eq!(refusal.code(), "io");
}

#[test]
fn a_file_that_takes_the_name_of_a_verified_one_is_refused() {
    let object = Object::new(&stored(&sample().sign(&[&key(1)])));
    let bundle = object.verify().unwrap();
    let mut other = sample();
    other.files.get_mut(DRIVER).unwrap()[20_000..20_010].copy_from_slice(b"other code");
    let replacement = object.directory.path().join("replacement");
    std::fs::write(&replacement, stored(&other.sign(&[&key(1)]))).unwrap();
    std::fs::rename(&replacement, &object.path).unwrap();
    let refusal = bundle.unread[DRIVER].read().unwrap_err();
    assert_eq!(refusal.code(), "digest-mismatch");
    // The new file is another bundle, with a component that is not known.
    let bundle = object.verify().unwrap();
    assert!(bundle.unread.is_empty());
    assert!(same(&bundle, &whole(&object.path)));
}

#[test]
fn a_compressed_archive_is_verified_whole() {
    let object = Object::new(&sample().sign(&[&key(1)]).archive());
    let bundle = object.verify().unwrap();
    assert!(bundle.unread.is_empty());
    assert!(same(&bundle, &whole(&object.path)));
}

#[test]
fn a_changed_byte_is_refused_at_the_start_or_when_the_component_is_read() {
    let signed = sample().sign(&[&key(1)]);
    let bytes = stored(&signed);
    let object = Object::new(&bytes);
    let original = object.verify().unwrap();
    let content = component_in(&bytes)..component_in(&bytes) + 300_000 + 9;
    let blocks = (0..3).map(|block| 14 + block * (128 * 1024 + 3));
    let headers = (0..14).chain(blocks.flat_map(|start| start..start + 3));
    for position in headers.chain((0..bytes.len()).step_by(997)) {
        for flip in [0x01, 0x02, 0x80] {
            object.overwrite(position as u64, &[bytes[position] ^ flip]);
            match object.verify() {
                Ok(bundle) => {
                    let what = format!("byte {position}, flip {flip:#x}");
                    let mut files = bundle.files.clone();
                    let read = bundle.unread.get(DRIVER).map(verify::UnreadFile::read);
                    match read.transpose() {
                        Ok(None) => drop(files.remove(DRIVER).expect(&what)),
                        Ok(Some(read)) => assert_eq!(*read, *sample().files[DRIVER], "{what}"),
                        Err(_) => assert!(content.contains(&position), "{what}"),
                    }
                    assert_eq!(files, original.files, "{what}");
                    assert_eq!(bundle.manifest_bytes, original.manifest_bytes, "{what}");
                }
                Err(_) => assert!(!content.contains(&position) || blocks_start(position)),
            }
            object.overwrite(position as u64, &bytes[position..=position]);
        }
    }
}

/// Whether this is a byte of the header of a block.
fn blocks_start(position: usize) -> bool {
    position >= 14 && (position - 14) % (128 * 1024 + 3) < 3
}

#[test]
fn the_set_of_names_stays_exact() {
    let signed = sample().sign(&[&key(1)]);
    let code = |change: &dyn Fn(&mut Signed)| {
        let mut signed = signed.clone();
        change(&mut signed);
        Object::new(&stored(&signed)).verify().unwrap_err().code()
    };
    let add = |name: &'static str| {
        move |signed: &mut Signed| drop(signed.files.insert(name.to_owned(), b"x".to_vec()))
    };
    for name in ["drivers/text-stats/extra", "zz", "a"] {
        assert_eq!(code(&add(name)), "file-extra", "{name}");
    }
    let removed = code(&|signed| drop(signed.files.remove(DRIVER)));
    assert_eq!(removed, "file-missing");
    let shorter = code(&|signed| signed.files.get_mut(DRIVER).unwrap().truncate(10_000));
    assert_eq!(shorter, "size-mismatch");
    let changed = code(&|signed| signed.files.get_mut("tools.json").unwrap()[0] ^= 1);
    assert_eq!(changed, "digest-mismatch");
}
