//! Registries that answer in unusual ways. Looking up co-signatures is optional: after any answer
//! of the registry, the bundle is either pulled or refused because a signature is missing.

use serde_json::json;
use toolward_registry::{BlobDigest, DocumentArtifact, Failure, RegistryClient, media};
use toolward_signing::envelope::Envelope;
use toolward_signing::manifest::MANIFEST_TYPE;
use toolward_signing::{ErrorKind, Refusal};

use crate::sample::{Sample, builder, envelope, key};
use crate::scripted::{Asked, Held, Say, Scripted, ok, status, with};

/// A registry with one bundle, signed by key 1, and one co-signature, by key 2.
struct Registry {
    held: Held,
    cosignature: Vec<u8>,
    attached: Vec<u8>,
}

impl Registry {
    fn new() -> Self {
        let sample = Sample::new(100, &[1]);
        let held = Held::new(&sample);
        let cosignature = envelope(MANIFEST_TYPE, &sample.manifest, &[2]);
        let attached = manifest(&cosignature, &held);
        Self {
            held,
            cosignature,
            attached,
        }
    }

    /// An index that lists the co-signature.
    fn index(&self) -> Vec<u8> {
        index(&[(
            &self.attached,
            Some(DocumentArtifact::Signatures.artifact_type()),
        )])
    }

    fn answer(&self, asked: &Asked) -> Say {
        for bytes in [&self.cosignature, &self.attached] {
            if asked.target.ends_with(&BlobDigest::of(bytes).to_string()) {
                return ok(bytes.clone());
            }
        }
        self.held.answer(asked)
    }
}

/// The OCI manifest of a co-signature.
fn manifest(cosignature: &[u8], held: &Held) -> Vec<u8> {
    let described = |media_type: &str, bytes: &[u8]| {
        json!({
            "mediaType": media_type,
            "digest": BlobDigest::of(bytes).to_string(),
            "size": bytes.len(),
        })
    };
    json!({
        "schemaVersion": 2,
        "mediaType": media::MANIFEST,
        "config": described(media::EMPTY, media::EMPTY_BYTES),
        "layers": [described(media::ENVELOPE, cosignature)],
        "subject": described(media::MANIFEST, &held.manifest),
        "artifactType": DocumentArtifact::Signatures.artifact_type(),
    })
    .to_string()
    .into_bytes()
}

/// An index of manifests, each with its artifact type if it has one.
fn index(manifests: &[(&[u8], Option<&str>)]) -> Vec<u8> {
    let entries = manifests.iter().map(|(bytes, artifact_type)| {
        let mut entry = json!({
            "mediaType": media::MANIFEST,
            "digest": BlobDigest::of(bytes).to_string(),
            "size": bytes.len(),
        });
        if let Some(artifact_type) = artifact_type {
            entry["artifactType"] = json!(artifact_type);
        }
        entry
    });
    json!({
        "schemaVersion": 2,
        "mediaType": media::INDEX,
        "manifests": entries.collect::<Vec<_>>(),
    })
    .to_string()
    .into_bytes()
}

/// A client that sends each request only once, since it would wait after answers such as 429.
fn client() -> RegistryClient {
    let limits = toolward_registry::ClientLimits {
        retries: 0,
        ..Default::default()
    };
    builder().limits(limits).build().unwrap()
}

/// Accepts an envelope that at least `threshold` of keys 1 and 2 signed.
fn signed_by(threshold: usize) -> impl Fn(&[u8]) -> Result<(), Refusal> {
    move |bytes| {
        let envelope = Envelope::parse(bytes)?;
        let signed = envelope.to_be_signed();
        let valid = [1, 2].into_iter().filter(|number| {
            let signatures = envelope.signatures();
            let public = key(*number).public();
            signatures
                .iter()
                .any(|one| public.verify(&signed, &one.sig).is_ok())
        });
        match valid.count() >= threshold {
            true => Ok(()),
            false => Err(Refusal::new(ErrorKind::ThresholdNotMet)),
        }
    }
}

/// Pulls `a:1`; returns the code of the warning, if any.
async fn pull(server: &Scripted, threshold: usize) -> Result<Option<&'static str>, Failure> {
    let downloads = tempfile::tempdir().unwrap();
    let reference = server.reference("a:1");
    let pulled = client()
        .pull(&reference, downloads.path(), None, signed_by(threshold))
        .await?;
    Ok(pulled.missing_signatures.map(|failure| failure.code()))
}

/// The result of a look-up, as the client sees it.
#[derive(Clone, Copy)]
enum Listing {
    Cosignature,
    Empty,
    /// The answer is not an index. Contains a part of the warning's code, if there is a warning.
    Unusable(Option<&'static str>),
}

use Listing::Unusable;

/// Answers that both the referrers API and the fallback tag may give.
fn answers(registry: &Registry) -> Vec<(Say, Listing)> {
    let elsewhere = ("Location", "https://elsewhere.example/");
    let page = ok("<html><body>Sign in</body></html>");
    vec![
        (ok(registry.index()), Listing::Cosignature),
        (ok(index(&[])), Listing::Empty),
        (ok("{}"), Unusable(Some("-invalid"))),
        (page, Unusable(Some("-invalid"))),
        (with(303, &[elsewhere]), Unusable(Some("-redirect-refused"))),
        (with(307, &[elsewhere]), Unusable(Some("-redirect-refused"))),
        (status(400), Unusable(Some("-failed"))),
        (status(401), Unusable(Some("registry-"))),
        (status(403), Unusable(Some("-credentials-refused"))),
        (status(404), Unusable(None)),
        (status(406), Unusable(Some("-failed"))),
        (status(410), Unusable(Some("-failed"))),
        (status(429), Unusable(Some("-busy"))),
        (status(500), Unusable(Some("-failed"))),
        (status(503), Unusable(Some("-busy"))),
        (Say::Nothing, Unusable(Some("-unreachable"))),
        (Say::Endless, Unusable(Some("-too-large"))),
    ]
}

#[tokio::test]
async fn whatever_answers_a_look_up_of_cosignatures_only_a_missing_signature_refuses() {
    let registry = Registry::new();
    let mut apis = answers(&registry);
    apis.extend([405, 501].map(|code| (status(code), Unusable(None))));
    let mut fallbacks = answers(&registry);
    // Some registries resolve the tag to the digest in its name.
    fallbacks.push((ok(registry.held.manifest.clone()), Unusable(None)));
    let absent = (status(404), Unusable(None));
    let indexed = (ok(registry.index()), Listing::Cosignature);
    let mut cases = pairs(&apis, &[absent.clone(), indexed]);
    cases.extend(pairs(
        &[absent, (status(400), Unusable(Some("-failed")))],
        &fallbacks,
    ));
    for ((api, listed), (fallback, tagged)) in cases {
        let case: String = format!("{api:?} then {fallback:?}")
            .chars()
            .take(200)
            .collect();
        let registry = Registry::new();
        let server = Scripted::start(move |asked| {
            if asked.target.contains("/referrers/") {
                api.clone()
            } else if asked.target.contains("/manifests/sha256-") {
                fallback.clone()
            } else {
                registry.answer(asked)
            }
        });
        let (found, warning) = match (listed, tagged) {
            (Listing::Cosignature, _) | (Unusable(_), Listing::Cosignature) => (true, None),
            (Listing::Empty, _) | (_, Listing::Empty) => (false, None),
            (Unusable(api), Unusable(fallback)) => (false, fallback.or(api)),
        };
        let warned = pull(&server, 1).await;
        let warned = warned.unwrap_or_else(|failure| panic!("{case}: {failure}"));
        assert_eq!(warned.is_some(), warning.is_some(), "{case}: {warned:?}");
        let part = warning.unwrap_or_default();
        assert!(
            warned.unwrap_or_default().contains(part),
            "{case}: {warned:?}"
        );
        let pulled = pull(&server, 2).await;
        assert_eq!(pulled.is_ok(), found, "{case}");
        if let Err(failure) = pulled {
            assert_eq!(failure.code(), "threshold-not-met", "{case}");
            let named = failure.hint().unwrap().contains("could not be looked up");
            assert_eq!(named, warning.is_some(), "{case}");
        }
    }
}

fn pairs<T: Clone>(one: &[T], other: &[T]) -> Vec<(T, T)> {
    let pairs = one
        .iter()
        .flat_map(|a| other.iter().map(|b| (a.clone(), b.clone())));
    pairs.collect()
}

#[tokio::test]
async fn a_cosignature_that_can_not_be_fetched_is_a_warning() {
    for (code, warning) in [
        (404, None),
        (403, Some("registry-credentials-refused")),
        (503, Some("registry-busy")),
    ] {
        let registry = Registry::new();
        let attached = BlobDigest::of(&registry.attached).to_string();
        let server = Scripted::start(move |asked| {
            if asked.target.contains("/referrers/") {
                ok(registry.index())
            } else if asked.target.ends_with(&attached) {
                status(code)
            } else {
                registry.answer(asked)
            }
        });
        assert_eq!(pull(&server, 1).await.unwrap(), warning, "{code}");
        let failure = pull(&server, 2).await.unwrap_err();
        assert_eq!(failure.code(), "threshold-not-met", "{code}");
    }
}

#[tokio::test]
async fn odd_entries_of_an_index_do_not_hide_a_cosignature() {
    let kind = DocumentArtifact::Signatures.artifact_type();
    let odd = |number: usize| {
        json!({
            "mediaType": media::MANIFEST, "digest": format!("md5:{number}"), "size": 1, "artifactType": kind,
        })
    };
    let mut entries = vec![
        json!(null),
        json!("text"),
        json!({ "artifactType": kind }),
        json!({ "mediaType": media::MANIFEST, "digest": 7, "size": "1", "artifactType": kind }),
    ];
    // More entries than the limit.
    entries.extend((0..40).map(odd));
    for api in [true, false] {
        let registry = Registry::new();
        let mut index: serde_json::Value = serde_json::from_slice(&registry.index()).unwrap();
        let good = index["manifests"][0].clone();
        let mut all = entries.clone();
        all.push(good);
        index["manifests"] = json!(all);
        let server = Scripted::start(move |asked| {
            if asked.target.contains("/referrers/") {
                match api {
                    true => ok(index.to_string()),
                    false => status(404),
                }
            } else if asked.target.contains("/manifests/sha256-") {
                ok(index.to_string())
            } else {
                registry.answer(asked)
            }
        });
        assert_eq!(pull(&server, 2).await.unwrap(), None, "{api}");
    }
}

#[tokio::test]
async fn an_index_with_one_bundle_is_followed() {
    let ours = "application/vnd.toolward.bundle.v1";
    let held = Registry::new().held;
    let (bundle, other) = (held.manifest.as_slice(), b"other".as_slice());
    let cases: [(Vec<u8>, Result<(), &str>); 7] = [
        (index(&[(bundle, Some(ours))]), Ok(())),
        (index(&[(bundle, None)]), Ok(())),
        (
            index(&[
                (other, Some("application/x")),
                (bundle, Some(ours)),
                (other, None),
            ]),
            Ok(()),
        ),
        (
            index(&[(other, Some("application/x")), (bundle, None)]),
            Ok(()),
        ),
        (index(&[]), Err("registry-artifact-unsupported")),
        (
            index(&[(other, Some("application/x"))]),
            Err("registry-artifact-unsupported"),
        ),
        (
            index(&[(bundle, Some(ours)), (other, Some(ours))]),
            Err("registry-artifact-unsupported"),
        ),
    ];
    for (index, expected) in cases {
        let (registry, tagged) = (Registry::new(), index.clone());
        let server = Scripted::start(move |asked| match asked.target.ends_with("/manifests/1") {
            true => ok(tagged.clone()),
            false => registry.answer(asked),
        });
        let shown = String::from_utf8(index).unwrap();
        let resolved = client().resolve(&server.reference("a:1")).await;
        let resolved = resolved.map(|artifact| assert_eq!(artifact.digest, held.digest));
        assert_eq!(
            resolved.map_err(|failure| failure.code()),
            expected,
            "{shown}"
        );
        let pulled = pull(&server, 1).await.map(drop);
        assert_eq!(
            pulled.map_err(|failure| failure.code()),
            expected,
            "{shown}"
        );
    }
}

#[tokio::test]
async fn an_index_does_not_vouch_for_what_it_leads_to() {
    let ours = "application/vnd.toolward.bundle.v1";
    let registry = Registry::new();
    let nested = index(&[(&registry.held.manifest, Some(ours))]);
    let both = String::from_utf8(registry.held.manifest.clone()).unwrap();
    let both = both.replace(media::MANIFEST, media::INDEX);
    let both = both.replacen('{', "{\"manifests\":[],", 1).into_bytes();
    for (entry, served, code) in [
        // The served bytes do not have the digest in the index.
        (
            &registry.held.manifest,
            b"{}".to_vec(),
            "registry-manifest-differs",
        ),
        // An index within an index.
        (&nested, nested.clone(), "registry-artifact-unsupported"),
        // A document that claims to be both an index and a manifest.
        (&both, both.clone(), "registry-manifest-invalid"),
    ] {
        let tagged = index(&[(entry, Some(ours))]);
        let server = Scripted::start(move |asked| match asked.target.ends_with("/manifests/1") {
            true => ok(tagged.clone()),
            false => ok(served.clone()),
        });
        let failure = client()
            .resolve(&server.reference("a:1"))
            .await
            .unwrap_err();
        assert_eq!(failure.code(), code);
    }
}

#[tokio::test]
async fn a_push_succeeds_with_any_answer_that_reports_success() {
    let sample = Sample::new(9 * 1024 * 1024, &[1]);
    for (head, success) in [(405, 200), (501, 201), (400, 202), (403, 204), (404, 201)] {
        let server = Scripted::start(move |asked| match asked.method.as_str() {
            "HEAD" => status(head),
            "POST" => with(202, &[("Location", "/v2/a/blobs/uploads/1")]),
            "PATCH" => with(success, &[("Location", "/v2/a/blobs/uploads/1")]),
            "PUT" => status(success),
            _ => status(404),
        });
        let pushed = client()
            .push(&sample.outgoing(), &server.reference("a:1"), None)
            .await;
        pushed.unwrap_or_else(|failure| panic!("HEAD {head}, then {success}: {failure}"));
        assert_eq!(server.count("PUT", "/manifests/1"), 1);
        assert_eq!(server.count("PUT", "/blobs/"), 3);
    }
    for refused in [400, 401, 403, 413] {
        let server = Scripted::start(move |asked| {
            match (asked.method.as_str(), asked.target.contains("/manifests/")) {
                ("HEAD", _) => status(200),
                ("PUT", true) => status(refused),
                _ => status(404),
            }
        });
        let sample = Sample::new(100, &[1]);
        let pushed = client()
            .push(&sample.outgoing(), &server.reference("a:1"), None)
            .await;
        assert!(pushed.is_err(), "{refused}");
    }
}
