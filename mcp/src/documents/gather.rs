//! Collects the served documents of all bundles, by the names that clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::shown::PromptEntry;
use toolward_contract::prompt::Part;
use toolward_policy::Policy;
use toolward_support::report::codes;

use super::decide::{self, Entry};
use super::prompt::ServedPrompt;
use super::provenance::Provenance;
use super::resource::{ServedResource, ServedTemplate};
use super::{All, Documents};
use crate::principal::Tools;

/// The documents of the bundles so far.
#[derive(Default)]
pub(super) struct Gathered {
    all: All,
}

impl Gathered {
    /// Adds what policy serves of a bundle.
    pub(super) fn add(&mut self, content: &Content, policy: &Policy) -> Result<(), DocumentsError> {
        let provenance = Arc::new(Provenance::of(content));
        // Files come before the prompts that embed them.
        let mut files = BTreeMap::new();
        for verdict in decide::verdicts(content, policy) {
            if verdict.hidden.is_some() {
                continue;
            }
            match verdict.entry {
                Entry::Resource(entry) => {
                    let new = ServedResource::new(verdict.name, entry.clone(), provenance.clone());
                    files.insert(entry.path.clone(), self.resource(new)?);
                }
                Entry::Template(entry, template) => {
                    let new = template.and_then(|template| {
                        ServedTemplate::new(template, entry, provenance.clone())
                    });
                    if let Some(new) = new {
                        self.template(new)?;
                    }
                }
                Entry::Prompt(entry) => self.prompt(&verdict.name, entry, &files, &provenance)?,
            }
        }
        Ok(())
    }

    fn resource(&mut self, new: ServedResource) -> Result<Arc<ServedResource>, DocumentsError> {
        let new = Arc::new(new);
        let resources = &mut self.all.resources;
        match resources.insert(new.uri.clone(), Arc::clone(&new)) {
            Some(first) => Err(clash(
                "resource",
                &new.uri,
                (&first.provenance, &first.path),
                (&new.provenance, &new.path),
            )),
            None => Ok(new),
        }
    }

    fn template(&mut self, new: ServedTemplate) -> Result<(), DocumentsError> {
        let new = Arc::new(new);
        let name = new.template.as_str().to_owned();
        let templates = &mut self.all.templates;
        match templates.insert(name.clone(), Arc::clone(&new)) {
            Some(first) => Err(clash(
                "template",
                &name,
                (&first.provenance, &first.path),
                (&new.provenance, &new.path),
            )),
            None => Ok(()),
        }
    }

    fn prompt(
        &mut self,
        name: &str,
        entry: &PromptEntry,
        files: &BTreeMap<String, Arc<ServedResource>>,
        provenance: &Arc<Provenance>,
    ) -> Result<(), DocumentsError> {
        let embedded = entry.prompt.messages.iter();
        let embedded = embedded.filter_map(|message| match &message.part {
            Part::Media { path, .. } | Part::File { path, .. } => Some(path),
            _ => None,
        });
        let embedded = embedded
            .filter_map(|path| Some((path.clone(), Arc::clone(files.get(path)?))))
            .collect();
        let prompt = Arc::clone(&entry.prompt);
        let new = Arc::new(ServedPrompt::new(
            name,
            prompt,
            &entry.path,
            embedded,
            provenance,
        ));
        let prompts = &mut self.all.prompts;
        match prompts.insert(name.to_owned(), Arc::clone(&new)) {
            Some(first) => Err(clash(
                "prompt",
                name,
                (&first.provenance, &first.path),
                (provenance, &new.path),
            )),
            None => Ok(()),
        }
    }

    /// All of them, unless a URI is ambiguous.
    pub(super) fn finish(self) -> Result<Documents, DocumentsError> {
        let all = self.all;
        let templates: Vec<_> = all.templates.values().collect();
        for (index, template) in templates.iter().enumerate() {
            let mut others = templates.iter().take(index);
            if let Some(first) = others.find(|other| other.template.overlaps(&template.template)) {
                return Err(clash(
                    "template",
                    template.template.as_str(),
                    (&first.provenance, &first.path),
                    (&template.provenance, &template.path),
                ));
            }
        }
        for resource in all.resources.values() {
            // A bundle's own file is the exception to its own template.
            let mut others = templates.iter();
            let other = others.find(|template| {
                template.provenance != resource.provenance
                    && template.values(&resource.uri).is_some()
            });
            if let Some(template) = other {
                return Err(clash(
                    "resource",
                    &resource.uri,
                    (&template.provenance, &template.path),
                    (&resource.provenance, &resource.path),
                ));
            }
        }
        Ok(Documents {
            all: Arc::new(all),
            tools: Tools::All,
        })
    }
}

fn clash(
    kind: &'static str,
    name: &str,
    first: (&Provenance, &str),
    second: (&Provenance, &str),
) -> DocumentsError {
    DocumentsError::Clash {
        kind,
        name: name.to_owned(),
        first: first.0.place(first.1),
        second: second.0.place(second.1),
    }
}

codes! {
    /// Why documents, or the features of a host, can't be served together.
    ///
    /// ```
    /// use toolward_mcp::DocumentsError;
    ///
    /// fn explain(error: &DocumentsError) -> String {
    ///     match error {
    ///         DocumentsError::Clash { name, .. } => format!("two documents are called {name}"),
    ///         _ => format!("{error} ({}): {}", error.code(), error.hint().unwrap_or_default()),
    ///     }
    /// }
    /// ```
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub enum DocumentsError: Error {
        /// `kind` is `prompt`, `resource` or `template`. The name or URI is untrusted, but printable ASCII. `first` and
        /// `second` are a file, its bundle and publisher.
        Clash { kind: &'static str, name: String, first: String, second: String } = "document-clash" ["2"],
            "two prompts or resources would have one name or URI",
            ("the {kind} {name:?} is in {first} and in {second}")
            => "take it from the [[document]] of one of them, or serve one bundle less";
    }
}
