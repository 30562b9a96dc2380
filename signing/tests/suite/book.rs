//! The readers accept the examples in the book's page of formats.

use toolward_signing::channel::ChannelIndex;
use toolward_signing::publisher::PublisherDocument;
use toolward_signing::revocation::RevocationList;
use toolward_signing::trust::TrustSettings;

use crate::support::key;

/// The TOML blocks of a page, with shortened values replaced by whole ones.
fn blocks() -> Vec<String> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/src/formats/publisher.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let pem = key(1).public().to_pem().unwrap();
    let other = key(2).public().to_pem().unwrap();
    page.split("```toml\n")
        .skip(1)
        .map(|after| {
            after
                .split("```")
                .next()
                .unwrap()
                .replace("cd841c22…", &"c".repeat(64))
                .replace("af1349b9…", &"a".repeat(64))
                .replace(
                    "-----BEGIN PUBLIC KEY-----\n…\n-----END PUBLIC KEY-----\n",
                    &pem,
                )
        })
        .map(|block| {
            // The example has a threshold of two and shows one key.
            let second = format!("[[keys]]\npem = \"\"\"\n{other}\"\"\"\n\n[[revoked_keys]]");
            block.replace("[[revoked_keys]]", &second)
        })
        .collect()
}

#[test]
fn the_examples_of_signed_documents_and_settings_are_read() {
    let blocks = blocks();
    let [publisher, list, index, channel, settings] = &blocks[..] else {
        panic!("{} blocks", blocks.len());
    };
    let document = PublisherDocument::parse(publisher.as_bytes()).unwrap();
    assert_eq!((document.threshold, document.resets.len()), (2, 1));
    let list = RevocationList::parse(list.as_bytes()).unwrap();
    assert_eq!((list.keys.len(), list.bundles.len()), (1, 1));
    let index = ChannelIndex::parse(index.as_bytes()).unwrap();
    assert_eq!(index.bundles[0].tools.len(), 1);
    let read = |text: &str| {
        TrustSettings::from_toml_with(text, &mut |_| Ok(key(1).public().to_pem().unwrap())).unwrap()
    };
    assert!(read(channel).channel(&index.name).is_some());
    let settings = read(settings);
    assert!(settings.require_provenance && !settings.denied.is_empty());
}
