//! Writes the seeds that no editor can: archives, a manifest, an envelope, components, cassettes. The
//! others below `corpus` are text, written by hand. Cassettes are of a new ledger each time.

mod cassettes;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toolward_signing::Digest;
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::SigningKey;
use toolward_signing::manifest::{
    Artifacts, FileEntry, FileRole, MANIFEST_TYPE, Manifest, ToolsEntry,
};
use toolward_signing::path::BundlePath;
use toolward_signing::timestamp::Timestamp;

fn write(target: &str, name: &str, bytes: &[u8]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join(name), bytes).expect("a seed");
}

fn main() {
    let files: BTreeMap<&str, &[u8]> = BTreeMap::from([
        ("tools.json", b"{\"version\":2,\"tools\":[]}".as_slice()),
        ("tools/demo.greet/TOOL.md", b"---\nid: demo.greet\n---\n"),
        ("drivers/demo-greet/driver.wasm", b"\0asm\x0d\0\x01\0"),
        ("README.md", b""),
    ]);
    let path = |text: &str| BundlePath::parse(text).expect("a path");
    let role = |name: &str| match name {
        "README.md" => FileRole::Other,
        name if name.ends_with(".wasm") => FileRole::Component,
        _ => FileRole::Contract,
    };
    let listed = files.iter().filter(|(name, _)| **name != "tools.json");
    let tools = files["tools.json"];
    let manifest = Manifest {
        id: "demo.greet".to_owned(),
        version: "1.0.0".parse().expect("a version"),
        sequence: 1,
        publisher: "demo".to_owned(),
        created: Timestamp::parse("2026-11-01T00:00:00Z").expect("a time"),
        expires: None,
        min_host: Some("0.1.0".parse().expect("a version")),
        provenance: true,
        artifacts: Artifacts {
            tools: ToolsEntry {
                path: path("tools.json"),
                blake3: Digest::of(tools),
                size: tools.len() as u64,
                version: 2,
            },
            files: listed
                .map(|(name, bytes)| FileEntry {
                    path: path(name),
                    blake3: Digest::of(bytes),
                    size: bytes.len() as u64,
                    role: role(name),
                })
                .collect(),
        },
    };
    let manifest = manifest.to_bytes().expect("a manifest");
    let mut envelope = Envelope::new(MANIFEST_TYPE, manifest.clone());
    envelope.sign(&SigningKey::from_bytes(&[7; 32]));
    let envelope = envelope.to_bytes().expect("an envelope");
    let contents = Contents {
        envelope: &envelope,
        manifest: &manifest,
        provenance: None,
        files: files
            .iter()
            .map(|(name, bytes)| (path(name), *bytes))
            .collect(),
    };
    let archived = archive::to_bytes(&contents).expect("an archive");
    let tar = zstd::decode_all(archived.as_slice()).expect("a tar");
    let behind = 512 + envelope.len().next_multiple_of(512);
    let moded = |mode: u8, bytes: &[u8]| [&[mode][..], bytes].concat();
    write("archive_walk", "as-it-is", &moded(0, &archived));
    write("archive_walk", "tar", &moded(1, &tar));
    write("archive_walk", "tar-to-sign", &moded(2, &tar[behind..]));
    write(
        "archive_walk",
        "truncated",
        &moded(2, &tar[behind..tar.len() - 1024]),
    );
    write(
        "archive_walk",
        "longer",
        &moded(1, &[&tar[..], &[0; 512]].concat()),
    );
    write("manifest", "small.toml", &manifest);
    write("envelope", "signed.json", &envelope);

    let nested =
        "(component $c (core module $m (func (export \"f\"))) (core instance (instantiate $m)))";
    for (name, text) in [
        ("empty", "(component)".to_owned()),
        ("nested", format!("(component {nested} (instance (instantiate $c)))")),
        (
            "handler",
            "(component (import \"wasi:http/types@0.2.0\" (instance)) (instance $i) (export \"toolward:driver/handler@0.1.0\" (instance $i)))".to_owned(),
        ),
        ("module", "(module (memory 1))".to_owned()),
    ] {
        write("component", name, &wat::parse_str(text).expect("a component"));
    }
    for (name, bytes) in cassettes::seeds() {
        write("cassette", name, &bytes);
    }
}
