//! Verifies what is served once more, as things stand now.

use std::time::SystemTime;

use toolward_bundle::content::Content;
use toolward_bundle::text::visible_line;
use toolward_signing::verify::{Bundle, Verified};

use super::looking::Looking;
use crate::commands::call::{Source, Whence};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::installed;
use crate::output::Output;
use crate::standing::Standing;
use crate::trust::{self, dev_content};

/// What verification starts from.
pub(super) struct Verifying<'a> {
    pub(super) source: &'a Source,
    pub(super) environment: &'a Environment,
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

impl Verifying<'_> {
    pub(super) fn again(&self, looking: &Looking<'_>, output: &Output) -> Result<Held, Failure> {
        let contents = match (self.source.whence(), looking.store()) {
            (Whence::Dev(directory), _) => {
                let contents = vec![dev_content(directory, output)?];
                return Ok(Held {
                    contents,
                    ends: None,
                });
            }
            (Whence::Bundles, _) => {
                let standing = self.standing(output)?;
                let contents = self.named(&standing, output);
                (contents, standing)
            }
            (Whence::Installed, Some(store)) => {
                let standing = self.standing(output)?;
                let contents = installed::contents(store, &standing, output)?;
                (contents, standing)
            }
            (Whence::Installed, None) => return Ok(Held::default()),
        };
        let (contents, standing) = contents;
        Ok(Held {
            ends: standing.ends(&contents),
            contents,
        })
    }

    /// What to do where it fails like this.
    pub(super) fn hint(&self, failure: &Failure) -> &'static str {
        match (self.source.whence(), failure.code.as_str()) {
            // Another process holds it, and what to do is to wait.
            (Whence::Dev(_), _) | (_, "store-busy" | "trust-busy") => "",
            _ => {
                "; after replacing the file of a key, or the folder `trust/`, start the server again"
            }
        }
    }

    /// Nobody trusted means nothing served.
    fn standing(&self, output: &Output) -> Result<Standing, Failure> {
        let trust = &self.source.trust;
        let trusted = trust.trusted(self.environment)?;
        trust.standing_or_empty(&trusted, self.environment, output)
    }

    /// Of the named bundles those that hold. One that is refused is left out, with a
    /// warning.
    fn named(&self, standing: &Standing, output: &Output) -> Vec<Content> {
        let mut contents = Vec::new();
        for bundle in &self.named {
            let again = standing
                .again(bundle)
                .map_err(|refusal| Failure::refused(&refusal));
            match again.and_then(trust::read) {
                Ok(content) => contents.push(content),
                Err(failure) => output.warning(format!(
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
