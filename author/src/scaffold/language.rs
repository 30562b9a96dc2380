//! The languages that a new driver can be written in, and what each writes.

use super::libraries::{self, Files};

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
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Ts => "ts",
            Self::Python => "python",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// The lines of `[[build]]` that name the source.
    pub(super) const fn build(self) -> &'static str {
        match self {
            Self::Rust => "crate = \"driver\"",
            Self::Js => {
                "kind = \"js\"\nsource = \"driver/driver.js\"\n\
                 # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                 world = \"driver-random\""
            }
            Self::Ts => {
                "kind = \"js\"\nsource = \"driver/driver.ts\"\n\
                 # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                 world = \"driver-random\""
            }
            Self::Python => {
                "kind = \"python\"\nsource = \"driver/driver.py\"\n\
                 # Buckets: driver-keyvalue; requests: driver-http; both: driver-all.\n\
                 world = \"driver\""
            }
            Self::Go => {
                "kind = \"go\"\nsource = \"driver\"\n\
                 # The program starts when it is built: faster calls, but no files, and math/rand gives the same\n\
                 # numbers in each call.\n\
                 snapshot = true"
            }
            Self::C => "kind = \"c\"\nsource = \"driver\"",
        }
    }

    /// Its files, with placeholders.
    pub(super) const fn templates(self) -> Files {
        match self {
            Self::Rust => templates!("rust":
                "Cargo.toml" => "driver/Cargo.toml",
                "lib.rs" => "driver/src/lib.rs",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
            Self::Js => templates!("../../sdk/js/template":
                "driver.js" => "driver/driver.js",
                "driver.test.js" => "driver/driver.test.js",
                "package.json" => "driver/package.json",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
            Self::Ts => templates!("../../sdk/js/template":
                "driver.ts" => "driver/driver.ts",
                "driver.test.ts" => "driver/driver.test.ts",
                "package.ts.json" => "driver/package.json",
                "tsconfig.json" => "driver/tsconfig.json",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
            Self::Python => templates!("../../sdk/python/template":
                "driver.py" => "driver/driver.py",
                "test_driver.py" => "driver/test_driver.py",
                "requirements.txt" => "driver/requirements.txt",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
            Self::Go => templates!("../../sdk/go/template":
                "driver.go" => "driver/driver.go",
                "driver_test.go" => "driver/driver_test.go",
                "go.mod" => "driver/go.mod",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
            Self::C => templates!("../../sdk/c/template":
                "driver.c" => "driver/driver.c",
                "gitignore" => ".gitignore",
                "README.md" => "README.md",
            ),
        }
    }

    /// Its guest library, which goes next to the driver.
    pub(super) const fn library(self) -> Files {
        match self {
            Self::Rust => libraries::RUST,
            Self::Js | Self::Ts => libraries::JS,
            Self::Python => libraries::PYTHON,
            Self::Go => libraries::GO,
            Self::C => libraries::C,
        }
    }

    /// What its library needs that is not part of it.
    pub(super) const fn beside_library(self) -> Files {
        match self {
            Self::Rust => &[libraries::RUST_MANIFEST],
            _ => &[],
        }
    }
}
