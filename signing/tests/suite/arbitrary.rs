//! Arbitrary bytes are refused without a panic or endless work.

use proptest::prelude::*;
use toolward_signing::channel::ChannelIndex;
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{PublicKey, SigningKey, is_encrypted};
use toolward_signing::manifest::{MANIFEST_TYPE, Manifest};
use toolward_signing::path::BundlePath;
use toolward_signing::provenance::Provenance;
use toolward_signing::publisher::{PublisherDocument, first_use};
use toolward_signing::revocation::RevocationList;
use toolward_signing::trust::{TrustSettings, TrustStore};
use toolward_signing::{channel, publisher, revocation, verify};

use crate::support::{Sample, acme, compress, envelope, key, options, tar_of, terms};

/// A good document with a few spots overwritten.
fn spoiled(good: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let length = good.len();
    prop::collection::vec((0..length, any::<u8>(), 0..4_usize), 1..6).prop_map(move |edits| {
        let mut bytes = good.clone();
        for (position, byte, kind) in edits {
            let position = position.min(bytes.len() - 1);
            match kind {
                0 => bytes[position] = byte,
                1 => bytes.insert(position, byte),
                2 if bytes.len() > 1 => drop(bytes.remove(position)),
                _ => bytes.truncate(position.max(1)),
            }
        }
        bytes
    })
}

fn small_sample() -> Sample {
    let mut sample = Sample::new();
    sample
        .files
        .get_mut("drivers/text-stats/driver.wasm")
        .unwrap()
        .truncate(600);
    sample
}

proptest! {
    #[test]
    fn any_bytes_as_an_archive(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(verify::archive_bytes(&bytes, &acme(), &options()).is_err());
        prop_assert!(verify::archive_bytes(&compress(&bytes), &acme(), &options()).is_err());
    }

    #[test]
    fn any_spoiled_tar(tar in spoiled(tar_of(&small_sample().sign(&[&key(1)]).archive()))) {
        let _ = verify::archive_bytes(&compress(&tar), &acme(), &options());
    }

    #[test]
    fn any_spoiled_archive(archive in spoiled(small_sample().sign(&[&key(1)]).archive())) {
        let _ = verify::archive_bytes(&archive, &acme(), &options());
    }

    #[test]
    fn any_spoiled_manifest_even_if_signed(
        text in spoiled(small_sample().manifest().to_bytes().unwrap())
    ) {
        let mut signed = small_sample().sign(&[&key(1)]);
        signed.envelope = envelope(MANIFEST_TYPE, &text, &[&key(1)]);
        signed.manifest = text;
        let _ = verify::archive_bytes(&signed.archive(), &acme(), &options());
    }

    #[test]
    fn any_text_as_a_manifest(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        prop_assert!(Manifest::parse(text.as_bytes()).is_err());
        prop_assert!(Manifest::parse(&bytes).is_err());
    }

    #[test]
    fn any_toml_like_text_as_a_manifest(text in r#"[a-z"'\\\[\]{}=,.:#0-9 \n+-]{0,80}"#) {
        prop_assert!(Manifest::parse(text.as_bytes()).is_err());
        let _ = TrustStore::from_toml(&text);
    }

    #[test]
    fn any_bytes_as_an_envelope_or_provenance(
        bytes in any::<Vec<u8>>(),
        spoiled in spoiled(small_sample().sign(&[&key(1)]).envelope),
    ) {
        prop_assert!(Envelope::parse(&bytes).is_err());
        let _ = Envelope::parse(&spoiled);
        prop_assert!(Provenance::parse(&bytes, b"").is_err());
    }

    #[test]
    fn any_spoiled_document_even_if_signed(
        publisher in spoiled(crate::documents::full().to_bytes().unwrap()),
        list in spoiled(crate::documents::list().to_bytes().unwrap()),
        index in spoiled(crate::channels::index(1).to_bytes().unwrap()),
    ) {
        let _ = first_use(&envelope(publisher::PAYLOAD_TYPE, &publisher, &[&key(1), &key(2)]), &terms());
        let trust = acme();
        let acme = trust.publisher("acme").unwrap();
        let list = envelope(revocation::PAYLOAD_TYPE, &list, &[&key(1)]);
        let _ = revocation::accept(&list, acme, &trust, None, &terms());
        let index = envelope(channel::PAYLOAD_TYPE, &index, &[&key(3)]);
        let _ = channel::accept(&index, &crate::channels::pinned(&[3], 1), &terms());
    }

    #[test]
    fn any_toml_like_text_as_a_document(text in r#"[a-z"'\\\[\]{}=,.:#0-9 \n+-]{0,80}"#) {
        prop_assert!(PublisherDocument::parse(text.as_bytes()).is_err());
        prop_assert!(RevocationList::parse(text.as_bytes()).is_err());
        prop_assert!(ChannelIndex::parse(text.as_bytes()).is_err());
        let _ = TrustSettings::from_toml_with(&text, &mut |_| Err(std::io::Error::other("none")));
    }

    #[test]
    fn any_bytes_as_a_key_file(bytes in any::<Vec<u8>>()) {
        prop_assert!(SigningKey::import(&bytes, None).is_err());
        prop_assert!(PublicKey::import(&bytes).is_err());
        let _ = is_encrypted(&bytes);
    }

    #[test]
    fn any_reason_that_is_written_reads_back(reason in any::<String>()) {
        let mut list = crate::documents::list();
        list.keys[0].reason = reason;
        if let Ok(bytes) = list.to_bytes() {
            prop_assert_eq!(RevocationList::parse(&bytes).unwrap(), list);
        }
    }

    #[test]
    fn any_text_as_a_key_or_path(text in any::<String>()) {
        prop_assert!(PublicKey::from_pem(&text).is_err());
        prop_assert!(SigningKey::from_pem(&text, None).is_err());
        if let Ok(path) = BundlePath::parse(&text) {
            prop_assert_eq!(path.as_str(), text);
        }
    }

    #[test]
    fn any_path_that_is_accepted_survives_an_archive(
        path in "[A-Za-z0-9._-]{1,60}(/[A-Za-z0-9._-]{1,60}){0,7}"
    ) {
        let mut sample = small_sample();
        if BundlePath::parse(&path).is_ok() && path.contains('x') {
            sample.files.insert(path.clone(), b"content".to_vec());
            let bundle = sample.sign(&[&key(1)]).verify(&acme()).unwrap();
            prop_assert_eq!(&**bundle.file(&path).unwrap(), b"content");
        }
    }
}
