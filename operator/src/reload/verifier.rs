//! Verifies the served bundles again, under the current trust.

use std::sync::Arc;
use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::verify::{Bundle, Verified};

use super::scanner::Scanner;
use crate::bundles::SourceKind;
use crate::error::{Code, Error};
use crate::installed;
use crate::operator::Operator;
use crate::report::Report;
use crate::trust::TrustContext;
use crate::trust::{self, dev_content};

/// The inputs of verification.
pub(super) struct Verifier {
    pub(super) operator: Arc<Operator>,
    /// The named bundles, as first read.
    pub(super) named: Vec<Verified<Bundle>>,
}

/// The bundles that verify now.
#[derive(Debug, Default)]
pub(super) struct Held {
    pub(super) contents: Vec<Content>,
    /// When the first of them expires, if that is known.
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
        let mut contents = Vec::new();
        for bundle in &self.named {
            let again = context.again(bundle).map_err(Error::refused);
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
