//! A small bundle in a temporary directory, and functions to change it.

use std::path::{Path, PathBuf};

use toolward_bundle::dev::{PackOptions, PackedBundle, pack};

pub(crate) const TOOL: &str = "---
id: demo.greet
name: Greet
description: Greets.
version: 1.0.0
inputs: { type: object, properties: { name: { type: string } }, required: [name] }
outputs: { type: object, properties: { greeting: { type: string } }, required: [greeting] }
---
";

pub(crate) const DRIVER: &str = "---
id: demo-greet
name: Greet driver
description: Greets.
version: 1.0.0
kind: component
component: driver.wasm
implements:
  - tool: demo.greet
    version: \"^1.0.0\"
---
";

pub(crate) const BUNDLE: &str = "id = \"demo.greet\"
version = \"1.0.0\"
sequence = 1
publisher = \"acme\"
created = \"2026-11-21T08:00:00Z\"
";

/// A component that exports the instance `export` and imports the instances `imports`.
pub(crate) fn component(export: &str, imports: &[&str]) -> Vec<u8> {
    let imports: String = imports
        .iter()
        .map(|name| format!("(import \"{name}\" (instance))"))
        .collect();
    wat::parse_str(format!(
        "(component {imports} (instance $i) (export \"{export}\" (instance $i)))"
    ))
    .unwrap()
}

pub(crate) fn handler() -> Vec<u8> {
    component("toolward:driver/handler@0.1.0", &[])
}

/// The authoring directory of a bundle.
pub(crate) struct Demo {
    pub(crate) directory: tempfile::TempDir,
}

impl Demo {
    pub(crate) fn new() -> Self {
        let demo = Self {
            directory: tempfile::tempdir().unwrap(),
        };
        demo.write("bundle.toml", BUNDLE);
        demo.write("tools/demo.greet/TOOL.md", TOOL);
        demo.write("drivers/demo-greet/DRIVER.md", DRIVER);
        demo.write("drivers/demo-greet/driver.wasm", handler());
        demo
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub(crate) fn remove(&self, name: &str) {
        std::fs::remove_file(self.path().join(name)).unwrap();
    }

    pub(crate) fn pack(&self) -> PackedBundle {
        pack(self.path(), &PackOptions::default()).unwrap()
    }
}
