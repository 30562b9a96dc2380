//! Verifies the served bundles again, under the current trust.

use std::sync::Arc;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::libraries::Reading;
use toolward_bundle::text::visible_line;
use toolward_signing::trust::Publisher;
use toolward_signing::verify::{Bundle, Verified};

use super::named_actions::NamedActions;
use super::scanner::Scanner;
use crate::bundles::{Reserved, SourceKind};
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
    actions: NamedActions,
    /// What the directory under work beside the named bundles may not take, also once they are withdrawn.
    reserved: Reserved,
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
        let publishers: Vec<_> = named.iter().map(|one| Arc::clone(&one.publisher)).collect();
        Self {
            actions: NamedActions::of(contents),
            reserved: Reserved::of(contents, &publishers),
            operator,
            named,
        }
    }

    pub(super) fn again(&self, scanner: &Scanner, report: &dyn Report) -> Result<Held, Error> {
        let contents = match (self.operator.source.kind(), scanner.store()) {
            (SourceKind::Dev(directory), _) => {
                let source = &self.operator.source;
                let environment = &self.operator.environment;
                let content =
                    dev_content(directory, &source.trust, &source.store, environment, report)?;
                let contents = vec![content];
                return Ok(Held {
                    contents,
                    ends: None,
                });
            }
            (SourceKind::Named, _) => {
                let context = self.context(report)?;
                let (contents, _) = self.named(&context, report);
                (contents, context)
            }
            (SourceKind::Beside(directory), _) => {
                let context = self.context(report)?;
                let (mut contents, publishers) = self.named(&context, report);
                let Operator {
                    source,
                    environment,
                    ..
                } = &*self.operator;
                // What is under work keeps no named bundle from being withdrawn.
                let own = source.beside(directory, &self.reserved, environment, report);
                // A publisher may have been given more prefixes.
                let added = Reserved::of(&[], &publishers);
                match own.and_then(|own| added.check(&own).map(|()| own)) {
                    Ok(own) => contents.push(own),
                    Err(failure) => refused(&directory.display().to_string(), &failure, report),
                }
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

    /// The named bundles that verify, and their publishers. A refused bundle is left out with a warning.
    fn named(
        &self,
        context: &TrustContext,
        report: &dyn Report,
    ) -> (Vec<Content>, Vec<Arc<Publisher>>) {
        let mut verified = Vec::new();
        for bundle in &self.named {
            match context.again(bundle).map_err(Error::refused) {
                Ok(bundle) => verified.push(bundle),
                Err(failure) => refused(&bundle.manifest.id, &failure, report),
            }
        }
        let ids: Vec<String> = verified.iter().map(|one| one.manifest.id.clone()).collect();
        let publishers = verified.iter().map(|one| Arc::clone(&one.publisher));
        let publishers = publishers.collect();
        let readings = verified.into_iter().map(Reading::new).collect();
        let contents = trust::finish(readings, context).into_iter();
        let contents = contents.zip(ids).filter_map(|(content, id)| {
            let content = content.and_then(|content| self.actions.check(content));
            content
                .map_err(|failure| refused(&id, &failure, report))
                .ok()
        });
        (contents.collect(), publishers)
    }
}

fn refused(id: &str, failure: &Error, report: &dyn Report) {
    report.warning(&format!(
        "{} is not served: {} ({})",
        visible_line(id, 200),
        failure.message,
        failure.code
    ));
}
