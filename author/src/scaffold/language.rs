//! The languages that a new driver can be written in, and what each writes: the driver, and its guest library, so
//! that nothing is fetched under a name that someone else could register.

/// Files: where they go, below the driver's folder for a library, and their text.
type Files = &'static [(&'static str, &'static str)];

/// The language of a new driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Language {
    /// Rust.
    #[default]
    Rust,
    /// JavaScript.
    Js,
    /// TypeScript.
    Ts,
    /// Python.
    Python,
    /// Go.
    Go,
    /// C.
    C,
}

macro_rules! templates {
    ($folder:literal: $($template:literal => $place:literal),* $(,)?) => {
        &[$(($place, include_str!(concat!($folder, "/", $template, ".in")))),*]
    };
}

impl Language {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Rust,
        Self::Js,
        Self::Ts,
        Self::Python,
        Self::Go,
        Self::C,
    ];

    /// Its word on the command line.
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    pub(super) const fn row(self) -> LanguageFiles {
        match self {
            Self::Rust => LanguageFiles {
                word: "rust",
                build: "crate = \"driver\"",
                templates: templates!("rust":
                    "Cargo.toml" => "driver/Cargo.toml",
                    "lib.rs" => "driver/src/lib.rs",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                    "toolward-guest.Cargo.toml" => "driver/toolward-guest/Cargo.toml",
                ),
                library: RUST,
            },
            Self::Js => LanguageFiles {
                word: "js",
                build: "kind = \"js\"\nsource = \"driver/driver.js\"\n\
                    # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                    world = \"driver-random\"",
                templates: templates!("../../sdk/js/template":
                    "driver.js" => "driver/driver.js",
                    "driver.test.js" => "driver/driver.test.js",
                    "package.json" => "driver/package.json",
                    "package-lock.json" => "driver/package-lock.json",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                ),
                library: JS,
            },
            Self::Ts => LanguageFiles {
                word: "ts",
                build: "kind = \"js\"\nsource = \"driver/driver.ts\"\n\
                    # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                    world = \"driver-random\"",
                templates: templates!("../../sdk/js/template":
                    "driver.ts" => "driver/driver.ts",
                    "driver.test.ts" => "driver/driver.test.ts",
                    "package.ts.json" => "driver/package.json",
                    "package-lock.ts.json" => "driver/package-lock.json",
                    "tsconfig.json" => "driver/tsconfig.json",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                ),
                library: JS,
            },
            Self::Python => LanguageFiles {
                word: "python",
                build: "kind = \"python\"\nsource = \"driver/driver.py\"\n\
                    # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                    world = \"driver\"",
                templates: templates!("../../sdk/python/template":
                    "driver.py" => "driver/driver.py",
                    "test_driver.py" => "driver/test_driver.py",
                    "requirements.txt" => "driver/requirements.txt",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                ),
                library: PYTHON,
            },
            Self::Go => LanguageFiles {
                word: "go",
                build: "kind = \"go\"\nsource = \"driver\"\n\
                    # The program starts when it is built: faster calls, but no files, and math/rand gives the same\n\
                    # numbers in each call.\n\
                    snapshot = true",
                templates: templates!("../../sdk/go/template":
                    "driver.go" => "driver/driver.go",
                    "driver_test.go" => "driver/driver_test.go",
                    "go.mod" => "driver/go.mod",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                ),
                library: GO,
            },
            Self::C => LanguageFiles {
                word: "c",
                build: "kind = \"c\"\nsource = \"driver\"",
                templates: templates!("../../sdk/c/template":
                    "driver.c" => "driver/driver.c",
                    "gitignore" => ".gitignore",
                    "README.md" => "README.md",
                ),
                library: C,
            },
        }
    }
}

/// What a language writes.
pub(super) struct LanguageFiles {
    word: &'static str,
    /// The lines of `[[build]]` that name the source.
    pub(super) build: &'static str,
    /// Its files, with placeholders.
    pub(super) templates: Files,
    /// Its guest library, which goes next to the driver.
    pub(super) library: Files,
}

macro_rules! files {
    ($folder:literal => $place:literal: $($name:literal,)*) => {
        &[$((
            concat!($place, $name),
            include_str!(concat!("../../sdk/", $folder, $name)),
        )),*]
    };
}

const RUST: Files = files!("" => "toolward-guest/":
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

const JS: Files = files!("js/" => "":
    "toolward.js",
    "toolward.d.ts",
    "toolward-testing.js",
    "toolward-testing.d.ts",
);

const PYTHON: Files = files!("python/" => "":
    "toolward_guest.py",
);

const GO: Files = files!("go/" => "toolward/":
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

const C: Files = files!("c/" => "toolward/":
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

    fn text_of(language: Language, place: &str) -> &'static str {
        let mut templates = language.row().templates.iter();
        templates.find(|(name, _)| *name == place).unwrap().1
    }

    /// A file of what the tests build with.
    fn tested(name: &str) -> String {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/languages");
        std::fs::read_to_string(tests.join(name)).unwrap()
    }

    #[test]
    fn each_package_has_the_version_and_the_digest_that_are_tested() {
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let tested_lock = parse(&tested("package-lock.json"));
        for language in [Language::Js, Language::Ts] {
            let manifest = parse(text_of(language, "driver/package.json"));
            let lock = parse(text_of(language, "driver/package-lock.json"));
            let needed = &manifest["devDependencies"];
            assert_eq!(lock["packages"][""]["devDependencies"], *needed);
            let packages = lock["packages"].as_object().unwrap().iter();
            for (name, package) in packages.filter(|(name, _)| !name.is_empty()) {
                let digest = package["integrity"].as_str().unwrap();
                assert!(digest.starts_with("sha512-"), "{name}");
                // The tests know neither TypeScript, which only checks types, nor every platform.
                if let Some(tested) = tested_lock["packages"].get(name) {
                    assert_eq!(digest, tested["integrity"], "{name}");
                }
            }
            for name in ["componentize-qjs", "esbuild"] {
                let name = format!("node_modules/{name}");
                assert!(tested_lock["packages"][name.as_str()].is_object(), "{name}");
                assert!(lock["packages"][name.as_str()].is_object(), "{name}");
            }
        }
        let requirements = text_of(Language::Python, "driver/requirements.txt");
        let (_, pinned) = requirements.split_once('\n').unwrap();
        assert!(pinned.contains("--hash=sha256:"), "{pinned}");
        assert!(tested("requirements.txt").contains(pinned), "{pinned}");
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
        let written: Table = text_of(Language::Rust, "driver/toolward-guest/Cargo.toml")
            .parse()
            .unwrap();
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
