//! Archives. Most bytes are no zstd frame and no signed bundle, so the first byte says how much is
//! done for them: as they are, compressed, or signed and compressed.

use toolward_signing::Digest;
use toolward_signing::archive;
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::{ENVELOPE_FILE, MANIFEST_TYPE};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};

const BLOCK: usize = 512;

/// The key of nobody: whoever runs a fuzzer may sign with it.
fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// A bundle is accepted only if it is, byte for byte, the one archive of the files that its
/// manifest lists.
pub fn archive_walk(data: &[u8]) -> bool {
    let Some((mode, rest)) = data.split_first() else {
        return false;
    };
    let tar = match mode % 3 {
        0 => {
            return accepted(rest).is_some();
        }
        1 => rest.to_vec(),
        _ => signed(rest),
    };
    let Some(bundle) = accepted(&compressed(&tar)) else {
        return false;
    };
    let again = bundle
        .contents()
        .and_then(|contents| archive::to_bytes(&contents));
    let again = again.unwrap_or_else(|refusal| panic!("{refusal}"));
    let again = zstd::decode_all(again.as_slice()).expect("what is written is a frame");
    assert_eq!(again, tar, "an archive has one writing");
    true
}

fn accepted(bytes: &[u8]) -> Option<Verified<Bundle>> {
    let trust = TrustStore::for_key(key().public());
    let bundle = verify::archive_bytes(bytes, &trust, &VerifyOptions::default()).ok()?;
    assert_eq!(bundle.signers, [key().public().key_id()]);
    let listed = bundle.manifest.sorted();
    assert!(
        listed.keys().copied().eq(bundle.files.keys()),
        "the set is exact"
    );
    for (path, expected) in listed {
        let bytes = &bundle.files[path];
        assert_eq!(u64::try_from(bytes.len()), Ok(expected.size), "{path}");
        assert_eq!(Digest::of(bytes), expected.blake3, "{path}");
    }
    Some(bundle)
}

fn compressed(tar: &[u8]) -> Vec<u8> {
    zstd::encode_all(tar, 1).expect("memory takes it")
}

/// The envelope's entry in front of a tar whose first entry is the manifest.
fn signed(tar: &[u8]) -> Vec<u8> {
    let size = tar
        .get(124..135)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    let size = size
        .and_then(|digits| usize::from_str_radix(digits, 8).ok())
        .unwrap_or_default();
    let manifest = tar.get(BLOCK..).unwrap_or_default();
    let manifest = manifest.get(..size.min(manifest.len())).unwrap_or_default();
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.to_vec());
    envelope.sign(&key());
    let envelope = envelope
        .to_bytes()
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    let mut whole = entry(ENVELOPE_FILE, &envelope);
    whole.extend_from_slice(tar);
    whole
}

/// One entry of a tar, as the format's only header has it.
fn entry(path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, path.as_bytes());
    put(100, b"0000644\x000000000\x000000000\0");
    put(
        124,
        format!("{:011o}\x0000000000000\0        0", bytes.len()).as_bytes(),
    );
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut entry = header.to_vec();
    entry.extend_from_slice(bytes);
    entry.resize(entry.len().next_multiple_of(BLOCK), 0);
    entry
}
