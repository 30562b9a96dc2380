//! What named bundles take from each other's actions, as it stood when they were named. Nobody accepts a change of it
//! while a server runs, so that a bundle is refused whose actions came to demand something else.

use std::collections::BTreeMap;

use toolward_bundle::content::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_signing::Digest;

use crate::error::Error;

/// By the digests of bundles that take actions from others: the surfaces that they had when they were named.
#[derive(Debug, Default)]
pub(super) struct NamedActions(BTreeMap<Digest, Digest>);

impl NamedActions {
    pub(super) fn of(contents: &[Content]) -> Self {
        let surfaces = contents.iter();
        let surfaces = surfaces
            .filter_map(|content| Some((content.manifest_digest, surface_with_actions(content)?)));
        Self(surfaces.collect())
    }

    /// Refuses a bundle whose actions of other bundles changed since it was named.
    pub(super) fn check(&self, content: Content) -> Result<Content, Error> {
        let known = self.0.get(&content.manifest_digest);
        match surface_with_actions(&content) {
            Some(found) if known != Some(&found) => {
                let id = content.manifest.id.clone();
                let accepted = known.copied().unwrap_or(content.manifest_digest);
                let changed = toolward_store::Error::ActionsChanged {
                    id,
                    accepted,
                    found,
                };
                Err(changed.into())
            }
            _ => Ok(content),
        }
    }
}

/// The surface of a bundle that takes actions from others, which may change without it.
pub(super) fn surface_with_actions(content: &Content) -> Option<Digest> {
    let takes = content.takes_actions();
    takes.then(|| BundleSurface::of(content).digest())
}

#[cfg(test)]
mod tests {
    use toolward_author::Sealed;
    use toolward_bundle::dev::{PackOptions, pack};
    use toolward_bundle::libraries::Reading;
    use toolward_signing::key::SigningKey;
    use toolward_signing::trust::TrustStore;
    use toolward_signing::verify::{self, Bundle, Verified, VerifyOptions};

    use super::*;

    /// Whom both bundles are of, and trust in them.
    struct World {
        key: SigningKey,
        trust: TrustStore,
    }

    impl World {
        fn new() -> Self {
            let key = SigningKey::generate().unwrap();
            let pem = key.public().to_pem().unwrap();
            let trust = format!(
                "[[publisher]]\nname = \"acme\"\nprefixes = [\"acme\"]\nactions = [\"words\"]\nkeys = ['''\n{pem}''']\n"
            );
            let trust = TrustStore::from_toml(&trust).unwrap();
            Self { key, trust }
        }

        fn bundle(&self, id: &str, path: &str, text: &str) -> Verified<Bundle> {
            let folder = tempfile::tempdir().unwrap();
            let head = format!(
                "id = \"{id}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n\
                 created = \"2026-01-01T00:00:00Z\"\n"
            );
            std::fs::write(folder.path().join("bundle.toml"), head).unwrap();
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
            let mut sealed = Sealed::new(&pack(folder.path(), &PackOptions::default()).unwrap());
            sealed.sign(&self.key).unwrap();
            let archive = sealed.to_archive().unwrap();
            verify::archive_bytes(&archive, &self.trust, &VerifyOptions::default()).unwrap()
        }

        /// A tool whose front matter has this line.
        fn tool(&self, line: &str) -> Verified<Bundle> {
            let text = format!(
                "---\nid: acme.count\nname: Count\ndescription: Counts.\nversion: 1.0.0\ninputs: {{}}\noutputs: {{}}\n\
                 {line}---\n"
            );
            self.bundle("acme.count", "tools/acme.count/TOOL.md", &text)
        }

        /// The tool with a library whose action has this line.
        fn beside(&self, tool: &Verified<Bundle>, line: &str) -> Content {
            let action = format!(
                "---\nschema: action/v1\nid: words:count\ndescription: Counts words.\n{line}---\n"
            );
            let library = self.bundle("acme.verbs", "actions/words-count/ACTION.md", &action);
            let both = [tool.clone(), library];
            let readings = both.into_iter().map(Reading::new).collect();
            let read = Reading::finish(readings, &self.trust);
            read.into_iter().next().unwrap().unwrap()
        }
    }

    #[test]
    fn a_named_bundle_whose_library_came_to_demand_something_else_is_refused() {
        let world = World::new();
        let tool = world.tool("implements: words:count\n");
        let as_named = world.beside(&tool, "");
        let named = NamedActions::of(std::slice::from_ref(&as_named));
        named.check(as_named).unwrap();
        for line in ["risk_level: 2\n", "requires: { database: [words] }\n"] {
            let refused = named.check(world.beside(&tool, line)).unwrap_err();
            assert_eq!(refused.code.as_str(), "actions-changed", "{refused}");
        }
        // Of one that was not named nothing is known.
        let unknown = NamedActions::default();
        assert!(unknown.check(world.beside(&tool, "")).is_err());
    }

    #[test]
    fn a_named_bundle_that_takes_no_action_from_others_is_what_its_digest_says() {
        let world = World::new();
        let alone = world.beside(&world.tool(""), "risk_level: 2\n");
        NamedActions::default().check(alone).unwrap();
    }
}
