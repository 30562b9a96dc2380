//! Verifies the served bundles again, under the current trust.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::Reading;
use toolward_bundle::surface::BundleSurface;
use toolward_bundle::text::visible_line;
use toolward_host::{WithheldReason, WithheldTool};
use toolward_signing::Digest;
use toolward_signing::trust::Publisher;
use toolward_signing::verify::{Bundle, Verified};

use crate::bundles::{ReservedIds, SourceKind};
use crate::installed::{self, LoadedBundles};
use crate::trust::TrustContext;
use crate::{Code, Environment, Error, Operator, Result};

use super::scanner::Scanner;

/// The inputs of verification.
pub(super) struct BundleVerifier {
    operator: Arc<Operator>,
    /// The named bundles, as they were first read.
    named: Vec<Verified<Bundle>>,
    actions: NamedActions,
    /// The tools of the named bundles, by the bundle's id.
    tools: Vec<(String, WithheldTool)>,
    /// The ids that a directory under work (an unsigned bundle) may not use while bundles are
    /// named. They stay reserved after the named bundles are withdrawn.
    reserved: ReservedIds,
}

/// The bundles that verify now, and the time at which the first of them expires, if known.
pub(super) type VerifiedBundles = (LoadedBundles, Option<SystemTime>);

impl BundleVerifier {
    /// `contents` are the contents of the named bundles, if any are named.
    pub(super) fn new(
        operator: Arc<Operator>,
        named: Vec<Verified<Bundle>>,
        contents: &[Content],
    ) -> Self {
        let publishers: Vec<_> = named.iter().map(|one| Arc::clone(&one.publisher)).collect();
        let signed = contents.iter().filter(|content| !content.origin.is_dev());
        let tools = signed.flat_map(|content| {
            let publisher = content.origin.publisher();
            content.tools.iter().map(move |entry| {
                let tool = WithheldTool::of(&entry.tool, &publisher, WithheldReason::Withdrawn);
                (content.manifest.id.clone(), tool)
            })
        });
        Self {
            tools: tools.collect(),
            actions: NamedActions::of(contents),
            reserved: ReservedIds::of(contents, &publishers),
            operator,
            named,
        }
    }

    pub(super) fn again(
        &self,
        scanner: &Scanner,
        environment: &Environment,
    ) -> Result<VerifiedBundles> {
        let source = &self.operator.source;
        // If no publisher is trusted, the trust is empty, and nothing is served.
        let context = || source.trust.context_or_empty(environment);
        let (loaded, context) = match (source.kind(), &scanner.store) {
            (SourceKind::Dev(directory), _) => {
                let content = source.dev(directory, environment)?;
                return Ok((LoadedBundles::all_of(vec![content]), None));
            }
            (SourceKind::Named, _) => {
                let context = context()?;
                let (loaded, _) = self.named(&context);
                (loaded, context)
            }
            (SourceKind::Beside(directory), _) => {
                let context = context()?;
                let (mut loaded, publishers) = self.named(&context);
                // A refused named bundle must be withdrawn even if the directory under work has an
                // error.
                let own = source.dev(directory, environment);
                // A publisher may have been granted more prefixes in the meantime.
                let added = ReservedIds::of(&[], &publishers);
                let free = |own: &Content| self.reserved.check(own).and_then(|()| added.check(own));
                match own.and_then(|own| free(&own).map(|()| own)) {
                    Ok(own) => loaded.contents.push(own),
                    Err(failure) => {
                        refused(&directory.display().to_string(), &failure, environment)
                    }
                }
                (loaded, context)
            }
            (SourceKind::Installed, Some(store)) => {
                let context = context()?;
                (installed::loaded(store, &context, None)?, context)
            }
            (SourceKind::Installed, None) => return Ok(VerifiedBundles::default()),
        };
        let ends = context.ends(&loaded.contents);
        Ok((loaded, ends))
    }

    /// Returns the hint for this failure.
    pub(super) fn hint(&self, failure: &Error) -> &'static str {
        let dev = matches!(self.operator.source.kind(), SourceKind::Dev(_));
        // Another process holds a lock, so waiting is enough.
        let busy = [toolward_store::Error::Busy.code(), Code::TrustBusy.code()];
        if dev || busy.contains(&failure.code.as_str()) {
            ""
        } else {
            "; after replacing the file of a key, or the folder `trust/`, start the server again"
        }
    }

    /// Returns the named bundles that verify, and their publishers. A refused bundle is left out
    /// with a warning.
    fn named(&self, context: &TrustContext) -> (LoadedBundles, Vec<Arc<Publisher>>) {
        let mut verified = Vec::new();
        let mut withheld = Vec::new();
        let mut leave_out = |id: &str, failure: &Error| {
            refused(id, failure, &context.environment);
            let tools = self.tools.iter().filter(|(bundle, _)| bundle == id);
            withheld.extend(tools.map(|(_, tool)| WithheldTool {
                reason: installed::reason(failure),
                ..tool.clone()
            }));
        };
        for bundle in &self.named {
            match context.again(bundle).map_err(Error::refused) {
                Ok(bundle) => verified.push(bundle),
                Err(failure) => leave_out(&bundle.manifest.id, &failure),
            }
        }
        let ids: Vec<String> = verified.iter().map(|one| one.manifest.id.clone()).collect();
        let publishers = verified.iter().map(|one| Arc::clone(&one.publisher));
        let publishers = publishers.collect();
        let readings = verified.into_iter().map(Reading::new).collect();
        let mut contents = Vec::new();
        for (content, id) in context.read(readings).into_iter().zip(ids) {
            match content.and_then(|content| self.actions.check(content)) {
                Ok(content) => contents.push(content),
                Err(failure) => leave_out(&id, &failure),
            }
        }
        (LoadedBundles { contents, withheld }, publishers)
    }
}

fn refused(id: &str, failure: &Error, environment: &Environment) {
    let what = format!("{} is not served", visible_line(id, 200));
    environment.report.warning_of(&what, failure);
}

/// For each named bundle that takes actions from other bundles, by its digest: the digest that its
/// surface (what models and policies see of it) had when it was named. While a server runs, no
/// person can accept a change of these actions. So a bundle is refused if they now demand something
/// else.
#[derive(Debug, Default)]
struct NamedActions(BTreeMap<Digest, Digest>);

impl NamedActions {
    fn of(contents: &[Content]) -> Self {
        let surfaces = contents.iter();
        let surfaces = surfaces
            .filter_map(|content| Some((content.manifest_digest, surface_with_actions(content)?)));
        Self(surfaces.collect())
    }

    /// Refuses a bundle if the actions that it takes from other bundles changed its surface since
    /// it was named.
    fn check(&self, content: Content) -> Result<Content> {
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

/// Returns the digest of the surface of a bundle that takes actions from other bundles; `None` for
/// other bundles. The actions can change while the bundle stays the same.
fn surface_with_actions(content: &Content) -> Option<Digest> {
    let takes = content.takes_actions();
    takes.then(|| BundleSurface::of(content).digest())
}

/// Identifies a bundle that is served.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServedBundle {
    pub(super) digest: Digest,
    /// The digest of the surface, only for a bundle that takes actions from other bundles: these
    /// can change while the bundle's digest stays the same.
    surface: Option<Digest>,
    /// The trusted publisher that signed it.
    publisher: String,
    /// For each tool, whether it may be listed under its own name. That depends on the publisher's
    /// prefixes.
    names_itself: Vec<bool>,
}

impl ServedBundle {
    pub(super) fn of(content: &Content) -> Self {
        Self {
            digest: content.manifest_digest,
            surface: surface_with_actions(content),
            publisher: content.origin.publisher(),
            names_itself: content.tools.iter().map(|tool| tool.names_itself).collect(),
        }
    }

    /// Whether calls to one bundle may continue when the other one is served.
    pub(super) fn is_same_bundle(&self, other: &Self) -> bool {
        self.digest == other.digest
            && self.surface == other.surface
            && self.publisher == other.publisher
    }
}

pub(super) fn served_bundles(contents: &[Content]) -> Vec<ServedBundle> {
    contents.iter().map(ServedBundle::of).collect()
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

    /// A publisher of both bundles, and trust in it.
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
        // Nothing is known about a bundle that was not named.
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
