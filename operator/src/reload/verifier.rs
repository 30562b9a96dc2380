//! Verifies the served bundles again, under the current trust.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::Digest;
use toolward_signing::verify::{Bundle, Verified};

use super::scanner::Scanner;
use super::surface_with_actions;
use crate::bundles::SourceKind;
use crate::error::{Code, Error};
use crate::installed;
use crate::operator::Operator;
use crate::report::Report;
use crate::trust::TrustContext;
use crate::trust::{self, dev_content};

/// The inputs of verification.
pub(super) struct Verifier {
    operator: Arc<Operator>,
    /// The named bundles, as first read.
    named: Vec<Verified<Bundle>>,
    /// By the digests of named bundles that take actions from others: the surfaces that they had when they were
    /// named.
    surfaces: BTreeMap<Digest, Digest>,
}

/// The bundles that verify now.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) contents: Vec<Content>,
    /// When the first of them expires, if that is known.
    pub(super) ends: Option<SystemTime>,
}

impl Verifier {
    /// `contents`: those of the named bundles, if any are named.
    pub(super) fn new(
        operator: Arc<Operator>,
        named: Vec<Verified<Bundle>>,
        contents: &[Content],
    ) -> Self {
        let surfaces = contents.iter();
        let surfaces = surfaces
            .filter_map(|content| Some((content.manifest_digest, surface_with_actions(content)?)));
        Self {
            surfaces: surfaces.collect(),
            operator,
            named,
        }
    }

    pub(super) fn again(&self, scanner: &Scanner, report: &dyn Report) -> Result<Held, Error> {
        let contents = match (self.operator.source.kind(), scanner.store()) {
            (SourceKind::Dev(directory), _) => {
                let contents = vec![dev_content(directory, report)?];
                return Ok(Held {
                    contents,
                    ends: None,
                });
            }
            (SourceKind::Named, _) => {
                let context = self.context(report)?;
                let contents = self.named(&context, report);
                (contents, context)
            }
            (SourceKind::Installed, Some(store)) => {
                let context = self.context(report)?;
                let contents = installed::contents(store, &context, report)?;
                (contents, context)
            }
            (SourceKind::Installed, None) => return Ok(Held::default()),
        };
        let (contents, context) = contents;
        Ok(Held {
            ends: context.ends(&contents),
            contents,
        })
    }

    /// The hint for this failure.
    pub(super) fn hint(&self, failure: &Error) -> &'static str {
        let dev = matches!(self.operator.source.kind(), SourceKind::Dev(_));
        // Another process holds a lock: waiting is enough.
        let busy = [toolward_store::Error::Busy.code(), Code::TrustBusy.code()];
        if dev || busy.contains(&failure.code.as_str()) {
            ""
        } else {
            "; after replacing the file of a key, or the folder `trust/`, start the server again"
        }
    }

    /// Without a trusted publisher nothing is served.
    fn context(&self, report: &dyn Report) -> Result<TrustContext, Error> {
        let trust = &self.operator.source.trust;
        let trusted = trust.trusted(&self.operator.environment)?;
        trust.context_or_empty(&trusted, &self.operator.environment, report)
    }

    /// The named bundles that verify. A refused bundle is left out with a warning.
    fn named(&self, context: &TrustContext, report: &dyn Report) -> Vec<Content> {
        let refused = |id: &str, failure: Error| {
            report.warning(&format!(
                "{} is not served: {} ({})",
                visible_line(id, 200),
                failure.message,
                failure.code
            ));
        };
        let mut verified = Vec::new();
        for bundle in &self.named {
            match context.again(bundle).map_err(Error::refused) {
                Ok(bundle) => verified.push(bundle),
                Err(failure) => refused(&bundle.manifest.id, failure),
            }
        }
        let ids: Vec<String> = verified.iter().map(|one| one.manifest.id.clone()).collect();
        let contents = trust::read_all(verified, context).into_iter();
        let contents = contents.zip(ids).filter_map(|(content, id)| {
            let content = content.and_then(|content| self.is_as_named(content));
            content.map_err(|failure| refused(&id, failure)).ok()
        });
        contents.collect()
    }

    /// Refuses a bundle whose actions of other bundles changed since it was named.
    fn is_as_named(&self, content: Content) -> Result<Content, Error> {
        let known = self.surfaces.get(&content.manifest_digest);
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
