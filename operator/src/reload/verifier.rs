//! Verifies what is served once more, as things stand now.

use std::sync::Arc;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::verify::{Bundle, Verified};

use super::scanner::Scanner;
use crate::bundles::SourceKind;
use crate::error::Error;
use crate::installed;
use crate::operator::Operator;
use crate::report::Report;
use crate::trust::TrustContext;
use crate::trust::{self, dev_content};

/// What verification starts from.
pub(super) struct Verifier {
    pub(super) operator: Arc<Operator>,
    /// The bundles that were named, as they were read first.
    pub(super) named: Vec<Verified<Bundle>>,
}

/// The bundles that hold now.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) contents: Vec<Content>,
    /// When the first of them ends to hold, if that is known.
    pub(super) ends: Option<SystemTime>,
}

impl Verifier {
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

    /// What to do where it fails like this.
    pub(super) fn hint(&self, failure: &Error) -> &'static str {
        match (self.operator.source.kind(), failure.code.as_str()) {
            // Another process holds it, and what to do is to wait.
            (SourceKind::Dev(_), _) | (_, "store-busy" | "trust-busy") => "",
            _ => {
                "; after replacing the file of a key, or the folder `trust/`, start the server again"
            }
        }
    }

    /// Nobody trusted means nothing served.
    fn context(&self, report: &dyn Report) -> Result<TrustContext, Error> {
        let trust = &self.operator.source.trust;
        let trusted = trust.trusted(&self.operator.environment)?;
        trust.context_or_empty(&trusted, &self.operator.environment, report)
    }

    /// Of the named bundles those that hold. One that is refused is left out, with a
    /// warning.
    fn named(&self, context: &TrustContext, report: &dyn Report) -> Vec<Content> {
        let mut contents = Vec::new();
        for bundle in &self.named {
            let again = context
                .again(bundle)
                .map_err(|refusal| Error::refused(&refusal));
            match again.and_then(trust::read) {
                Ok(content) => contents.push(content),
                Err(failure) => report.warning(&format!(
                    "{} is not served: {} ({})",
                    visible_line(&bundle.manifest.id, 200),
                    failure.message,
                    failure.code
                )),
            }
        }
        contents
    }
}
