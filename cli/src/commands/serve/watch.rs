//! Looks for what changed while tools are served: bundles installed, removed or
//! revoked, and directories under work that were edited.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tokio_util::sync::CancellationToken;
use toolward_bundle::content::{Content, Origin};
use toolward_host::Host;
use toolward_host::confine::Confinement;
use toolward_mcp::{Service, Surface};
use toolward_policy::Policy;
use toolward_store::Store;

use super::tools;
use crate::commands::call::{Source, Whence};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::installed;
use crate::output::Output;
use crate::trust::dev_content;

/// How often it looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How often everything is verified again, changed or not: bundles expire, too.
const AGAIN: Duration = Duration::from_secs(300);
/// How long what was served goes on being served while it can't be verified again.
/// After that nothing is.
const GRACE: Duration = Duration::from_secs(60);
/// How deep, and at how many files of a directory under work, it looks.
const DEPTH: usize = 8;
const FILES: usize = 10_000;

/// What is served, and what of it may change.
pub(super) struct Watch<'a> {
    source: &'a Source,
    environment: &'a Environment,
    /// Open from before the process was confined.
    store: Option<Store>,
    contents: Vec<Content>,
    trust: Option<PathBuf>,
}

/// What a change would change.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    files: BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
    installed: Vec<String>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        source: &'a Source,
        environment: &'a Environment,
        contents: &[Content],
    ) -> Result<Self, Failure> {
        let store = match source.whence() {
            Whence::Installed => source.store.existing(environment)?,
            _ => None,
        };
        let trust = source.trust.publishers(environment).ok();
        Ok(Self {
            source,
            environment,
            store,
            contents: contents.to_vec(),
            trust: trust.map(|publishers| publishers.folder().to_owned()),
        })
    }

    /// What a confined process has to keep to look again.
    pub(super) fn kept(&self, mut confinement: Confinement) -> Result<Confinement, Failure> {
        if let Some(folder) = self.trust.as_ref().filter(|folder| folder.is_dir()) {
            confinement = confinement.read(folder);
        }
        for file in self.source.trust.key_files(self.environment)? {
            if file.is_file() {
                confinement = confinement.read(file);
            }
        }
        match self.source.whence() {
            Whence::Dev(directory) => confinement = confinement.read(directory),
            Whence::Bundles => {}
            Whence::Installed => {
                if let Some((store, lock)) = self.source.store.read_places(self.environment) {
                    confinement = confinement.read(store);
                    if lock.is_file() {
                        confinement = confinement.read_write(lock);
                    }
                }
            }
        }
        Ok(confinement)
    }

    /// Looks until told to stop, and has what changed served anew.
    pub(super) fn run(
        mut self,
        service: &Service,
        remake: &dyn Fn(Vec<Content>) -> Result<Surface, Failure>,
        json: bool,
        stop: &CancellationToken,
    ) {
        let mut seen = self.look();
        let mut tried = Instant::now();
        let mut verified = Instant::now();
        let mut failing = false;
        while !stop.is_cancelled() {
            std::thread::sleep(PAUSE);
            let now = self.look();
            let patience = if failing { GRACE } else { AGAIN };
            if now == seen && tried.elapsed() < patience {
                continue;
            }
            seen = now;
            tried = Instant::now();
            let output = Output::new(json, false);
            match self.again(&output) {
                Ok(contents) => {
                    verified = Instant::now();
                    failing = false;
                    self.serve(contents, service, remake, &output);
                }
                Err(failure) => {
                    failing = true;
                    // What can't be verified is not believed for long.
                    let over = verified.elapsed() >= AGAIN.saturating_add(GRACE);
                    if over {
                        self.serve(Vec::new(), service, remake, &output);
                    }
                    output.warning(format!(
                        "the bundles can't be verified again, and {}: {} ({})",
                        if over {
                            "none is served"
                        } else {
                            "what was served is"
                        },
                        failure.message,
                        failure.code
                    ));
                }
            }
        }
    }

    fn serve(
        &mut self,
        contents: Vec<Content>,
        service: &Service,
        remake: &dyn Fn(Vec<Content>) -> Result<Surface, Failure>,
        output: &Output,
    ) {
        let digests = |contents: &[Content]| -> Vec<_> {
            let digests = contents.iter();
            digests.map(|content| content.manifest_digest).collect()
        };
        let (before, now) = (digests(&self.contents), digests(&contents));
        if before == now {
            return;
        }
        // What is gone is gone at once, whether or not the rest can be served.
        let surface = service.surface();
        for gone in before.iter().filter(|digest| !now.contains(digest)) {
            surface
                .host()
                .withdraw(&gone.to_string(), "it was removed, replaced or revoked");
        }
        let failure = match remake(contents.clone()) {
            Ok(surface) => {
                let count = tools(&surface);
                service.replace(surface);
                self.contents = contents;
                output.note(format!("serving {count} from now on"));
                return;
            }
            Err(failure) => failure,
        };
        // Without what is new; or, if that can't be had either, without anything:
        // what was taken back is not even shown.
        let mut kept = std::mem::take(&mut self.contents);
        kept.retain(|content| now.contains(&content.manifest_digest));
        match remake(kept.clone()).or_else(|_failure| nothing()) {
            Ok(surface) => {
                if surface.tool_count() > 0 {
                    self.contents = kept;
                }
                service.replace(surface);
            }
            Err(failure) => output.warning(format!("{} ({})", failure.message, failure.code)),
        }
        output.warning(format!(
            "what changed is not served: {} ({})",
            failure.message, failure.code
        ));
    }

    /// The bundles as they are now, verified.
    fn again(&self, output: &Output) -> Result<Vec<Content>, Failure> {
        let trust = &self.source.trust;
        match self.source.whence() {
            Whence::Dev(directory) => Ok(vec![dev_content(directory, output)?]),
            Whence::Bundles => {
                let trusted = trust.trusted(self.environment)?;
                let standing = trust.standing_or_empty(&trusted, self.environment, output)?;
                let mut contents = self.contents.clone();
                contents.retain(|content| {
                    let Origin::Signed { publisher, signers } = &content.origin else {
                        return false;
                    };
                    let mut known = standing.store.publishers();
                    let known = known.find(|one| one.name() == publisher);
                    let digest = &content.manifest_digest;
                    let checked =
                        known.map(|one| standing.revocations.check_release(one, signers, digest));
                    matches!(checked, Some(Ok(())))
                });
                Ok(contents)
            }
            Whence::Installed => match &self.store {
                Some(store) => {
                    // Nobody trusted means nothing served.
                    let trusted = trust.trusted(self.environment)?;
                    let standing = trust.standing_or_empty(&trusted, self.environment, output)?;
                    installed::contents(store, &standing, output)
                }
                None => Ok(self.contents.clone()),
            },
        }
    }

    fn look(&self) -> Seen {
        let mut seen = Seen::default();
        if let Some(folder) = &self.trust {
            look_into(folder, DEPTH, &mut seen.files);
        }
        if let Whence::Dev(directory) = self.source.whence() {
            look_into(directory, DEPTH, &mut seen.files);
        }
        if let Some(store) = &self.store {
            // One that can't be read looks like a change, and is found out about.
            let installed = store.list().unwrap_or_default();
            seen.installed = installed.iter().map(|one| format!("{one:?}")).collect();
        }
        seen
    }
}

/// A surface without anything.
fn nothing() -> Result<Surface, Failure> {
    let host = Host::builder().build()?;
    Ok(Surface::new(host, &[], &Policy::empty(), usize::MAX)?)
}

fn look_into(
    folder: &Path,
    depth: usize,
    files: &mut BTreeMap<PathBuf, (u64, Option<SystemTime>)>,
) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            // What compilers leave behind is no part of a bundle.
            if entry.file_name() != "target" {
                look_into(&path, depth, files);
            }
        } else if files.len() < FILES {
            files.insert(path, (metadata.len(), metadata.modified().ok()));
        }
    }
}
