//! Splitting an archive into two pieces and joining them.

use toolward_signing::archive::{
    Contents, Effort, attach, content_bytes, first_envelope, to_bytes,
};
use toolward_signing::path::BundlePath;
use toolward_signing::{Refusal, verify};

use crate::support::{Sample, Signed, acme, assert_same, key, options};

fn large() -> Signed {
    let mut sample = Sample::new();
    // Content for several zstd blocks, one of which refers far back.
    let noise: Vec<u8> = (0..300_000_u32)
        .flat_map(|n| {
            n.wrapping_mul(2_654_435_761)
                .rotate_left(n % 31)
                .to_be_bytes()
        })
        .collect();
    sample
        .files
        .insert("schemas/noise.json".to_owned(), noise.repeat(3));
    sample.sign(&[&key(1)])
}

fn contents(signed: &Signed) -> Contents<'_> {
    Contents {
        envelope: &signed.envelope,
        manifest: &signed.manifest,
        provenance: signed.provenance.as_deref(),
        files: signed
            .files
            .iter()
            .map(|(path, bytes)| (BundlePath::parse(path).unwrap(), bytes.as_slice()))
            .collect(),
    }
}

/// The two pieces of an archive.
struct Detached {
    envelope: Vec<u8>,
    content: Vec<u8>,
}

fn detach(signed: &Signed) -> Detached {
    Detached {
        envelope: signed.envelope.clone(),
        content: content_bytes(&contents(signed)).unwrap(),
    }
}

fn attached(pieces: &Detached, effort: Effort) -> Result<Vec<u8>, Refusal> {
    let Detached { envelope, content } = pieces;
    let size = content.len() as u64;
    attach(envelope, content.as_slice(), size, effort, Vec::new())
}

#[test]
fn an_archive_taken_apart_and_put_together_has_the_same_bytes() {
    for signed in [Sample::new().sign(&[&key(1)]), large()] {
        let pieces = detach(&signed);
        assert_eq!(attached(&pieces, Effort::Exact).unwrap(), signed.archive());
    }
}

#[test]
fn a_quickly_made_archive_verifies_to_the_same_bundle() {
    let signed = large();
    let pieces = detach(&signed);
    let quick = attached(&pieces, Effort::Fast).unwrap();
    let one = verify::archive_bytes(&quick, &acme(), &options()).unwrap();
    let other = verify::archive_bytes(&signed.archive(), &acme(), &options()).unwrap();
    assert_same(&one, &other);
}

#[test]
fn a_further_signature_leaves_the_content_as_it_is() {
    let sample = Sample::new();
    let one = detach(&sample.sign(&[&key(1)]));
    let both = detach(&sample.sign(&[&key(1), &key(2)]));
    assert_ne!(one.envelope, both.envelope);
    assert_eq!(one.content, both.content);
}

#[test]
fn the_envelope_is_read_from_an_archives_beginning() {
    let signed = large();
    let archive = signed.archive();
    assert_eq!(first_envelope(&archive[..100]).unwrap(), None);
    let beginning = &archive[..archive.len() / 2];
    assert_eq!(
        first_envelope(beginning).unwrap().as_deref(),
        Some(signed.envelope.as_slice())
    );
    let other = to_bytes(&Contents {
        envelope: b"{}",
        ..contents(&signed)
    });
    assert_eq!(
        first_envelope(&other.unwrap()).unwrap().as_deref(),
        Some(b"{}".as_slice())
    );
}

#[test]
fn hostile_content_is_refused_before_it_is_put_together() {
    let signed = Sample::new().sign(&[&key(1)]);
    let pieces = detach(&signed);
    let bomb = zstd::bulk::compress(&vec![0; 64 * 1024 * 1024], 3).unwrap();
    let mut unsized_frame = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    std::io::Write::write_all(&mut unsized_frame, &[0; 4096]).unwrap();
    let cases = [
        (bomb, "archive-ratio"),
        (b"not zstd at all".to_vec(), "archive-format"),
        (Vec::new(), "archive-format"),
        (unsized_frame.finish().unwrap(), "archive-format"),
        (
            pieces.content[..pieces.content.len() - 40].to_vec(),
            "archive-truncated",
        ),
        (
            [pieces.content.as_slice(), b"x"].concat(),
            "archive-trailing-data",
        ),
        (
            [
                pieces.content.clone(),
                zstd::bulk::compress(b"x", 1).unwrap(),
            ]
            .concat(),
            "archive-trailing-data",
        ),
    ];
    for (content, code) in cases {
        let envelope = pieces.envelope.clone();
        let refusal = attached(&Detached { envelope, content }, Effort::Fast).expect_err(code);
        assert_eq!(refusal.code(), code, "{refusal}");
    }
    let pieces = Detached {
        envelope: vec![b' '; 800_000],
        content: pieces.content,
    };
    assert_eq!(
        attached(&pieces, Effort::Fast).unwrap_err().code(),
        "too-large"
    );
}

#[test]
fn an_archive_that_does_not_begin_with_its_envelope_is_not_taken_apart() {
    let pieces = detach(&Sample::new().sign(&[&key(1)]));
    assert_eq!(
        first_envelope(&pieces.content).unwrap_err().code(),
        "archive-order"
    );
}

#[test]
fn an_envelope_alone_is_verified_as_strictly_as_the_bundle_is() {
    let sample = Sample::new();
    let signed = sample.sign(&[&key(1)]);
    let announced = verify::envelope(&signed.envelope, &acme(), &options()).unwrap();
    let bundle = verify::archive_bytes(&signed.archive(), &acme(), &options()).unwrap();
    assert_eq!(announced.manifest_digest, bundle.manifest_digest);
    assert_eq!(announced.signers, bundle.signers);
    let foreign = Sample {
        id: "other.thing".to_owned(),
        ..Sample::new()
    };
    for wrong in [sample.sign(&[&key(2)]), foreign.sign(&[&key(1)])] {
        let ahead = verify::envelope(&wrong.envelope, &acme(), &options()).unwrap_err();
        let whole = verify::archive_bytes(&wrong.archive(), &acme(), &options()).unwrap_err();
        assert_eq!(ahead.code(), whole.code());
    }
}
