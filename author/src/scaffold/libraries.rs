//! The guest libraries, as a new driver gets them: nothing is fetched under a name that
//! somebody else could register.

/// Files: where they go below the driver's folder, and their text.
pub(super) type Files = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($folder:literal => $place:literal: $($name:literal,)*) => {
        &[$((
            concat!($place, $name),
            include_str!(concat!("../../sdk/", $folder, $name)),
        )),*]
    };
}

/// The manifest of [`RUST`], which is in no workspace.
pub(super) const RUST_MANIFEST: (&str, &str) = (
    "toolward-guest/Cargo.toml",
    include_str!("rust/toolward-guest.Cargo.toml"),
);

pub(super) const RUST: Files = files!("" => "toolward-guest/":
    "src/ask.rs",
    "src/bindings.rs",
    "src/block.rs",
    "src/call.rs",
    "src/error.rs",
    "src/http/failure.rs",
    "src/http/mod.rs",
    "src/http/request.rs",
    "src/http/response.rs",
    "src/http/send.rs",
    "src/http/url.rs",
    "src/keyvalue/bindings.rs",
    "src/keyvalue/mod.rs",
    "src/lib.rs",
    "src/log.rs",
    "src/outcome.rs",
    "src/panics.rs",
    "src/prelude.rs",
    "src/progress.rs",
    "src/run.rs",
    "src/secrets.rs",
    "src/testing/bucket.rs",
    "src/testing/grants.rs",
    "src/testing/mod.rs",
    "src/tools.rs",
    "src/without_std.rs",
);

pub(super) const JS: Files = files!("js/" => "":
    "toolward.js",
    "toolward.d.ts",
    "toolward-testing.js",
    "toolward-testing.d.ts",
);

pub(super) const PYTHON: Files = files!("python/" => "":
    "toolward_guest.py",
);

pub(super) const GO: Files = files!("go/" => "toolward/":
    "ask.go",
    "call.go",
    "doc.go",
    "error.go",
    "fetch/fetch.go",
    "fetch/fetch_other.go",
    "fetch/fetch_wasip1.go",
    "go.mod",
    "grants.go",
    "internal/export/export_toolward_driver_handler/handler.go",
    "internal/host/host.go",
    "internal/host/host_other.go",
    "internal/host/host_wasip1.go",
    "internal/wit/runtime/empty.s",
    "internal/wit/runtime/runtime.go",
    "internal/wit/toolward_driver_handler/wit_bindings.go",
    "internal/wit/toolward_driver_log/wit_bindings.go",
    "internal/wit/toolward_driver_progress/wit_bindings.go",
    "internal/wit/toolward_driver_secrets/wit_bindings.go",
    "internal/wit/toolward_driver_tools/wit_bindings.go",
    "internal/wit/toolward_driver_types/wit_bindings.go",
    "internal/wit/types/option.go",
    "internal/wit/types/result.go",
    "internal/wit/types/tuple.go",
    "internal/wit/types/unit.go",
    "internal/wit/wasi_clocks_monotonic_clock/wit_bindings.go",
    "internal/wit/wasi_http_outgoing_handler/wit_bindings.go",
    "internal/wit/wasi_http_types/wit_bindings.go",
    "internal/wit/wasi_io_error/wit_bindings.go",
    "internal/wit/wasi_io_poll/wit_bindings.go",
    "internal/wit/wasi_io_streams/wit_bindings.go",
    "internal/wit/wasi_keyvalue_atomics/wit_bindings.go",
    "internal/wit/wasi_keyvalue_batch/wit_bindings.go",
    "internal/wit/wasi_keyvalue_store/wit_bindings.go",
    "internal/wit/wasi_random_random/wit_bindings.go",
    "internal/wit/wit_exports/wit_exports.go",
    "keyvalue/keyvalue.go",
    "keyvalue/keyvalue_other.go",
    "keyvalue/keyvalue_wasip1.go",
    "log.go",
    "log_wasip1.go",
    "nethttp/nethttp.go",
    "reply.go",
    "snapshot_wasip1.go",
    "tool.go",
    "toolwardtest/toolwardtest.go",
);

pub(super) const C: Files = files!("c/" => "toolward/":
    "toolward.c",
    "toolward.h",
    "wit.c",
    "wit.h",
);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use toml::Table;

    use super::*;

    fn walk(root: &Path, folder: &str, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => walk(root, &format!("{name}/"), found),
                false => {
                    found.insert(name);
                }
            }
        }
    }

    /// The files of a library that a driver uses.
    fn of_the_library(folder: &str, keeps: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("sdk")
            .join(folder);
        let mut found = BTreeSet::new();
        walk(&root, "", &mut found);
        found.retain(|name| !name.starts_with("template/") && keeps(name));
        found
    }

    fn written(files: Files, place: &str) -> BTreeSet<String> {
        let names = files.iter().map(|(name, _)| *name);
        names
            .map(|name| name.strip_prefix(place).unwrap().to_owned())
            .collect()
    }

    #[test]
    fn each_file_of_a_library_is_written() {
        let all = |_: &str| true;
        let rust = of_the_library("", |name| name.starts_with("src/"));
        assert_eq!(written(RUST, "toolward-guest/"), rust);
        let js = of_the_library("js", |name| name.starts_with("toolward"));
        assert_eq!(written(JS, ""), js);
        let python = of_the_library("python", |name| name.starts_with("toolward"));
        assert_eq!(written(PYTHON, ""), python);
        let go = of_the_library("go", |name| !name.ends_with("_test.go"));
        assert_eq!(written(GO, "toolward/"), go);
        assert_eq!(written(C, "toolward/"), of_the_library("c", all));
    }

    #[test]
    fn the_manifest_for_rust_is_that_of_the_crate_without_the_workspace() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |path: &str| -> Table {
            let text = std::fs::read_to_string(root.join(path)).unwrap();
            text.parse().unwrap()
        };
        let (workspace, own) = (read("Cargo.toml"), read("guest-sdk/Cargo.toml"));
        let written: Table = RUST_MANIFEST.1.parse().unwrap();
        let shared = &workspace["workspace"];
        for (name, expected) in own["dependencies"].as_table().unwrap() {
            let mut expected = expected.clone();
            if expected.get("workspace").is_some() {
                expected = shared["dependencies"][name].clone();
            }
            assert_eq!(written["dependencies"][name], expected, "{name}");
        }
        assert_eq!(written["features"], own["features"]);
        let package = &written["package"];
        assert_eq!(package["version"], shared["package"]["version"]);
        assert_eq!(package["edition"], shared["package"]["edition"]);
        assert_eq!(package["rust-version"], own["package"]["rust-version"]);
    }
}
