//! Manifests, envelopes and signed documents: what is read is written and read back the same.

use toolward_signing::channel::ChannelIndex;
use toolward_signing::envelope::{Envelope, pae};
use toolward_signing::manifest::Manifest;
use toolward_signing::publisher::PublisherDocument;
use toolward_signing::revocation::RevocationList;

/// A manifest has one writing, and that writing says what was read.
pub fn manifest(data: &[u8]) -> bool {
    let Ok(read) = Manifest::parse(data) else {
        return false;
    };
    let written = match read.to_bytes() {
        Ok(written) => written,
        Err(refusal) => panic!("what was read can be written: {refusal}"),
    };
    let again = Manifest::parse(&written).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(again.to_bytes().ok(), Some(written));
    assert_eq!(again.sorted(), read.sorted());
    let mut read = read;
    read.artifacts.files.clone_from(&again.artifacts.files);
    assert_eq!(read, again);
    true
}

/// An envelope keeps payload, type and signatures; and what is signed tells its parts apart.
pub fn envelope(data: &[u8]) -> bool {
    let Ok(read) = Envelope::parse(data) else {
        return false;
    };
    let written = read
        .to_bytes()
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    let again = Envelope::parse(&written).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(again, read);
    assert_eq!(again.to_bytes().ok(), Some(written));
    let (kind, payload) = (read.payload_type(), read.payload());
    let signed = pae(kind, payload);
    assert!(signed.ends_with(payload));
    // A byte that moves from the one part to the other is another text.
    if let Some((first, rest)) = payload.split_first()
        && first.is_ascii()
    {
        let moved = format!("{kind}{}", char::from(*first));
        assert_ne!(pae(&moved, rest), signed);
    }
    true
}

/// A text is a document of one kind at most, and what is read of it is written and read back.
pub fn signed_document(data: &[u8]) -> bool {
    let written = [
        PublisherDocument::parse(data)
            .ok()
            .map(|read| read.to_bytes()),
        RevocationList::parse(data).ok().map(|read| read.to_bytes()),
        ChannelIndex::parse(data).ok().map(|read| read.to_bytes()),
    ];
    let mut kinds = written.into_iter().flatten();
    let Some(written) = kinds.next() else {
        return false;
    };
    assert!(kinds.next().is_none(), "one kind cannot pass for another");
    match written {
        Ok(written) => {
            let again = [
                PublisherDocument::parse(&written)
                    .ok()
                    .map(|read| read.to_bytes()),
                RevocationList::parse(&written)
                    .ok()
                    .map(|read| read.to_bytes()),
                ChannelIndex::parse(&written)
                    .ok()
                    .map(|read| read.to_bytes()),
            ];
            let again = again.into_iter().flatten().next();
            assert_eq!(again.and_then(Result::ok), Some(written));
        }
        // The one layout may be longer than the one that was read.
        Err(refusal) => assert!(data.len() > 100_000, "{refusal}"),
    }
    true
}
