//! Collects the served documents of all bundles, by the names that clients use.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_policy::Policy;
use toolward_support::report::codes;

use super::decide::{self, Entry};
use super::{
    All, Provenance, Served, ServedByName, ServedDocuments, ServedPrompt, ServedResource,
    ServedTemplate,
};
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
                    let name = verdict.name.clone();
                    let new = ServedResource::new(verdict.name, entry.clone(), provenance.clone());
                    let new = insert(&mut self.all.resources, "resource", &name, new)?;
                    files.insert(entry.path.clone(), new);
                }
                Entry::Template(entry, template) => {
                    let new = template.and_then(|template| {
                        ServedTemplate::new(template, entry, provenance.clone())
                    });
                    if let Some(new) = new {
                        let name = new.template.as_str().to_owned();
                        insert(&mut self.all.templates, "template", &name, new)?;
                    }
                }
                Entry::Prompt(entry) => {
                    let new = ServedPrompt::new(&verdict.name, entry, &files, &provenance);
                    insert(&mut self.all.prompts, "prompt", &verdict.name, new)?;
                }
            }
        }
        Ok(())
    }

    /// All of them, unless a URI is ambiguous.
    pub(super) fn finish(self) -> Result<ServedDocuments, DocumentsError> {
        let all = self.all;
        let templates: Vec<_> = all.templates.values().collect();
        for (index, template) in templates.iter().enumerate() {
            let mut others = templates.iter().take(index);
            if let Some(first) = others.find(|other| other.template.overlaps(&template.template)) {
                return Err(clash(
                    "template",
                    template.template.as_str(),
                    first,
                    template,
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
                return Err(clash("resource", &resource.uri, template, resource));
            }
        }
        Ok(ServedDocuments {
            all: Arc::new(all),
            tools: Tools::All,
        })
    }
}

/// Adds a document, of whose name there must be no other.
fn insert<L, C>(
    all: &mut ServedByName<L, C>,
    kind: &'static str,
    name: &str,
    new: Served<L, C>,
) -> Result<Arc<Served<L, C>>, DocumentsError> {
    let new = Arc::new(new);
    match all.insert(name.to_owned(), Arc::clone(&new)) {
        Some(first) => Err(clash(kind, name, &first, &new)),
        None => Ok(new),
    }
}

fn clash<L, C, M, D>(
    kind: &'static str,
    name: &str,
    first: &Served<L, C>,
    second: &Served<M, D>,
) -> DocumentsError {
    DocumentsError::Clash {
        kind,
        name: name.to_owned(),
        first: first.provenance.place(&first.path),
        second: second.provenance.place(&second.path),
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
