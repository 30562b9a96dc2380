//! The book's page about registries agrees with the code.

use std::path::Path;

use toolward_registry::{ClientLimits, DocumentArtifact, FailureReason, media};

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    std::fs::read_to_string(root.join("docs/src/formats/registry.md")).unwrap()
}

#[test]
fn every_code_stands_in_the_book_with_its_advice() {
    let page = page();
    for row in FailureReason::ALL.iter().map(|reason| reason.row()) {
        let row = format!("| `{}` | {} | {} |", row.code, row.meaning, row.advice);
        assert!(page.contains(&row), "the page lacks:\n{row}");
    }
}

#[test]
fn every_media_type_and_annotation_stands_in_the_book() {
    let page = page();
    let names = [
        media::BUNDLE,
        media::CONTENT,
        media::ENVELOPE,
        media::MANIFEST,
        media::EMPTY,
        media::TITLE,
        media::VERSION,
        media::CREATED,
        media::DESCRIPTION,
        media::SOURCE,
        media::LICENSES,
        media::BUNDLE_ID,
        media::BUNDLE_SEQUENCE,
        media::BUNDLE_PUBLISHER,
        media::BUNDLE_DIGEST,
    ];
    let kinds = DocumentArtifact::ALL.iter();
    let kinds = kinds.flat_map(|kind| [Some(kind.artifact_type()), kind.repository()]);
    for name in names.into_iter().chain(kinds.flatten()) {
        assert!(page.contains(name), "the page lacks {name}");
    }
}

#[test]
fn the_limits_in_the_book_are_those_of_the_code() {
    let limits = ClientLimits::default();
    let page = page().split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(limits.content, 512 * 1024 * 1024);
    assert_eq!(limits.manifest, 1024 * 1024);
    assert_eq!(DocumentArtifact::Signatures.max_bytes(), 768 * 1024);
    assert_eq!(DocumentArtifact::Channel.max_bytes(), 8 * 1024 * 1024);
    for said in [
        format!("repeated up to {} times", limits.retries),
        format!("up to {} seconds", limits.patience.as_secs()),
        format!("takes at most {} minutes", limits.total.as_secs() / 60),
        format!("at most {} attachments", limits.referrers),
        "at most 512 MiB".to_owned(),
        "at most 1 MiB".to_owned(),
        "A channel's envelope has at most 8 MiB".to_owned(),
    ] {
        assert!(page.contains(&said), "the page lacks: {said}");
    }
}
