//! Another client, `oci-client`: it reads our artifacts, and we read its artifacts.

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::manifest::OciImageManifest;
use oci_client::secrets::RegistryAuth;
use toolward_registry::{BlobDigest, media};

use crate::sample::{Sample, by_key_one, client};
use crate::scripted::Held;
use crate::server::Server;

fn other() -> oci_client::Client {
    // `oci-client` needs a default crypto provider, even for plain http.
    let _ = rustls::crypto::ring::default_provider().install_default();
    oci_client::Client::new(ClientConfig {
        protocol: ClientProtocol::Http,
        ..ClientConfig::default()
    })
}

async fn blob(reference: &oci_client::Reference, digest: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    other()
        .pull_blob(reference, digest, &mut bytes)
        .await
        .unwrap();
    bytes
}

#[tokio::test]
async fn another_client_pulls_what_we_pushed() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(50_000, &[1]);
    let held = Held::new(&sample);
    let target = server.reference("team/a:1");
    let pushed = client()
        .push(&sample.outgoing(), &target, None)
        .await
        .unwrap();
    let reference: oci_client::Reference = format!("{}/team/a:1", server.address).parse().unwrap();
    let (bytes, digest) = other()
        .pull_manifest_raw(&reference, &RegistryAuth::Anonymous, &[media::MANIFEST])
        .await
        .unwrap();
    assert_eq!(digest, pushed.to_string());
    assert_eq!(bytes, held.manifest);
    let manifest: OciImageManifest = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        blob(&reference, &manifest.layers[0].digest).await,
        held.envelope
    );
    assert_eq!(
        blob(&reference, &manifest.layers[1].digest).await,
        held.content
    );
}

#[tokio::test]
async fn we_pull_what_another_client_pushed() {
    let Some(server) = Server::start() else {
        return;
    };
    let sample = Sample::new(50_000, &[1]);
    let held = Held::new(&sample);
    let reference: oci_client::Reference = format!("{}/team/a:1", server.address).parse().unwrap();
    let theirs = other();
    theirs
        .store_auth_if_needed(reference.resolve_registry(), &RegistryAuth::Anonymous)
        .await;
    for bytes in [
        media::EMPTY_BYTES.to_vec(),
        held.envelope.clone(),
        held.content.clone(),
    ] {
        let digest = BlobDigest::of(&bytes).to_string();
        theirs.push_blob(&reference, bytes, &digest).await.unwrap();
    }
    theirs
        .push_manifest_raw(
            &reference,
            held.manifest.clone(),
            media::MANIFEST.parse().unwrap(),
        )
        .await
        .unwrap();
    let downloads = tempfile::tempdir().unwrap();
    let target = server.reference("team/a:1");
    let pulled = client()
        .pull(&target, downloads.path(), None, by_key_one)
        .await
        .unwrap();
    let archive = pulled.archive(Default::default(), Vec::new()).unwrap();
    assert!(archive == sample.archive());
}
