//! `examples/bundles`: one signed archive for each example, with a provenance. The key is in the
//! repository, so anyone can make the archives. Trust stores know this key and refuse it.

use std::path::{Path, PathBuf};

use toolward_author::{AuthorError, PackOptions, PackedBundle, Sealed};
use toolward_signing::key::{PublicKey, SigningKey};
use toolward_signing::manifest::FileRole;
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};

use crate::{Outcome, sources};

const KEY: &str = "examples/keys/INSECURE-example-signing-key.pem";
const PUBLIC_KEY: &str = "examples/keys/example.pub.pem";

/// Packs, signs and writes every example whose drivers are built. `compiler` is the compiler of the
/// drivers in Rust. If another build would give other bytes, the archive stays unchanged as long as
/// its sources do.
pub(crate) fn write(root: &Path, compiler: &str) -> Outcome {
    let key = SigningKey::from_pem(&read(&root.join(KEY))?, None).map_err(shown)?;
    let folder = root.join("examples/bundles");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let trust = trust(root)?;
    for example in examples(root)? {
        let reproducible = sources::is_reproducible(root, &example.folder)?;
        if !reproducible && check_one(root, &example, &trust).is_ok() {
            println!("examples/bundles/{}.toolbundle: kept", example.name);
            continue;
        }
        let packed = toolward_author::pack(&example.folder, &PackOptions::default())
            .map_err(|error| format!("{}: {}", example.name, explained(&error.into())))?;
        let provenance = sources::provenance(root, &example.folder, compiler)?;
        let mut sealed = Sealed::new(&packed);
        sealed.sign(&key).map_err(|error| explained(&error))?;
        sealed
            .attest(&provenance, &key)
            .map_err(|error| explained(&error))?;
        sealed
            .write_archive(&example.archive(root))
            .map_err(|error| explained(&error))?;
        println!(
            "examples/bundles/{}.toolbundle: {}",
            example.name, packed.manifest.id
        );
    }
    Ok(())
}

/// Checks that each archive has the bytes that its sources give. The components are taken from the
/// archive, and their sources are compared by digest.
pub(crate) fn check(root: &Path) -> Outcome {
    let trust = trust(root)?;
    let mut stale = Vec::new();
    let examples = examples(root)?;
    for example in &examples {
        if let Err(reason) = check_one(root, example, &trust) {
            stale.push(format!("{}: {reason}", example.name));
        }
    }
    for archive in archives(root)? {
        if !examples
            .iter()
            .any(|example| example.archive(root) == archive)
        {
            stale.push(format!("{} has no example beside it", archive.display()));
        }
    }
    if stale.is_empty() {
        println!(
            "examples/bundles: all {} are those of their sources",
            examples.len()
        );
        return Ok(());
    }
    Err(format!(
        "examples/bundles is stale; run `cargo xtask examples` and commit it:\n  {}",
        stale.join("\n  ")
    ))
}

fn trust(root: &Path) -> Outcome<TrustStore> {
    let key = PublicKey::from_pem(&read(&root.join(PUBLIC_KEY))?).map_err(shown)?;
    Ok(TrustStore::for_key(key))
}

fn check_one(root: &Path, example: &Example, trust: &TrustStore) -> Outcome {
    let options = VerifyOptions {
        now: None,
        ..VerifyOptions::default()
    };
    let bundle = verify::open(&example.archive(root), trust, &options).map_err(shown)?;
    let provenance = bundle.provenance.as_ref().ok_or("it has no provenance")?;
    for now in sources::of_driver(root, &example.folder)? {
        if !provenance.sources.contains(&now) {
            return Err(format!(
                "the sources {} have changed since it was built",
                now.name
            ));
        }
    }

    // Packs today's documents with the archive's components.
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    copy_documents(&example.folder, scratch.path())?;
    for entry in bundle
        .manifest
        .artifacts
        .files
        .iter()
        .filter(|entry| entry.role == FileRole::Component)
    {
        let path = scratch.path().join(entry.path.as_str());
        let bytes = bundle
            .file(entry.path.as_str())
            .ok_or("a component is missing")?;
        std::fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let packed: PackedBundle = toolward_author::pack(scratch.path(), &PackOptions::default())
        .map_err(|error| explained(&error.into()))?;
    if packed.manifest_bytes == *bundle.manifest_bytes {
        Ok(())
    } else {
        Err("its manifest is not the one that `pack` makes now".to_owned())
    }
}

/// Copies all files of an authoring folder, except components and the drivers' crates.
fn copy_documents(from: &Path, to: &Path) -> Outcome {
    for entry in entries(from)? {
        let Some(name) = entry.file_name() else {
            continue;
        };
        let to = to.join(name);
        if entry.is_dir() {
            if name != "driver" {
                std::fs::create_dir(&to).map_err(|error| format!("{}: {error}", to.display()))?;
                copy_documents(&entry, &to)?;
            }
        } else if entry
            .extension()
            .is_none_or(|extension| extension != "wasm")
        {
            std::fs::copy(&entry, &to).map_err(|error| format!("{}: {error}", entry.display()))?;
        }
    }
    Ok(())
}

struct Example {
    name: String,
    folder: PathBuf,
}

impl Example {
    fn archive(&self, root: &Path) -> PathBuf {
        root.join("examples/bundles")
            .join(format!("{}.toolbundle", self.name))
    }
}

fn examples(root: &Path) -> Outcome<Vec<Example>> {
    Ok(entries(&root.join("examples"))?
        .into_iter()
        .filter(|folder| folder.join("bundle.toml").is_file())
        .filter_map(|folder| {
            let name = folder.file_name()?.to_string_lossy().into_owned();
            Some(Example { name, folder })
        })
        .collect())
}

fn archives(root: &Path) -> Outcome<Vec<PathBuf>> {
    entries(&root.join("examples/bundles"))
}

fn entries(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let describe = |error| format!("{}: {error}", folder.display());
    let mut entries = std::fs::read_dir(folder)
        .map_err(describe)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(describe)?;
    entries.sort();
    Ok(entries)
}

fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn shown(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn explained(error: &AuthorError) -> String {
    let mut text = error.to_string();
    for diagnostic in error.diagnostics() {
        text.push_str("\n    ");
        text.push_str(&diagnostic.to_string());
    }
    text
}
