//! What policy serves of each bundle, and whether it can be served together.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_bundle::content::Content;
use toolward_bundle::shown::ResourceEntry;
use toolward_contract::prompt::Part;
use toolward_contract::resource::UriTemplate;
use toolward_policy::{DocumentAccess, Policy};

use super::prompt::ServedPrompt;
use super::resource::{ServedResource, ServedTemplate};
use super::source::Source;
use super::{Documents, DocumentsError};

/// The documents of the bundles so far.
#[derive(Default)]
pub(super) struct Gathered {
    documents: Documents,
}

impl Gathered {
    /// Adds what policy serves of a bundle.
    pub(super) fn add(&mut self, content: &Content, policy: &Policy) -> Result<(), DocumentsError> {
        let source = Arc::new(Source::of(content));
        let access = policy.documents_of(&source.publisher, &source.bundle);
        let mut files = BTreeMap::new();
        for entry in &content.resources {
            if !access.resource(entry.name()) || !entry.is_servable() {
                continue;
            }
            if let Some(resource) = self.resource(entry, &source, &access)? {
                files.insert(entry.path.clone(), resource);
            }
        }
        for entry in &content.prompts {
            let prompt = &entry.prompt;
            if !access.prompt(prompt.id.as_str()) {
                continue;
            }
            let embedded = prompt
                .messages
                .iter()
                .filter_map(|message| match &message.part {
                    Part::Media { path, .. } | Part::File { path, .. } => Some(path),
                    _ => None,
                });
            // What it embeds is shown only where policy shows it by itself.
            let embedded: Option<BTreeMap<_, _>> = embedded
                .map(|path| Some((path.clone(), Arc::clone(files.get(path)?))))
                .collect();
            let Some(embedded) = embedded else {
                continue;
            };
            let own = prompt.mcp_name.as_deref();
            let own = own.filter(|name| access.prompt_name(prompt.id.as_str(), name));
            let name = own.unwrap_or(prompt.id.as_str()).to_owned();
            let served =
                ServedPrompt::new(&name, Arc::clone(prompt), &entry.path, embedded, &source);
            let prompts = &mut self.documents.prompts;
            let new = Arc::new(served);
            if let Some(first) = prompts.insert(name.clone(), Arc::clone(&new)) {
                return Err(clash(
                    "prompt",
                    &name,
                    (&first.source, &first.path),
                    (&source, &new.path),
                ));
            }
        }
        Ok(())
    }

    /// Adds a file, or a template, under its own URI or the host's.
    fn resource(
        &mut self,
        entry: &ResourceEntry,
        source: &Arc<Source>,
        access: &DocumentAccess<'_>,
    ) -> Result<Option<Arc<ServedResource>>, DocumentsError> {
        let about = entry.about.as_ref();
        let host = source.uri(entry.name());
        if let Some(about) = about.filter(|about| about.is_template()) {
            let own = about.uri_template.clone();
            let own = own.filter(|own| access.resource_uri(entry.name(), own.as_str()));
            let template = own.or_else(|| {
                let names = about
                    .arguments
                    .iter()
                    .map(|one| format!("/{{{}}}", one.name));
                UriTemplate::of_host(&(host + &names.collect::<String>())).ok()
            });
            let served = template
                .and_then(|template| ServedTemplate::new(template, entry, Arc::clone(source)));
            if let Some(served) = served {
                let name = served.template.as_str().to_owned();
                let new = Arc::new(served);
                let templates = &mut self.documents.templates;
                if let Some(first) = templates.insert(name.clone(), new) {
                    let first = (first.source.as_ref(), first.path.as_str());
                    return Err(clash(
                        "template",
                        &name,
                        first,
                        (source.as_ref(), &entry.path),
                    ));
                }
            }
            return Ok(None);
        }
        let own = about.and_then(|about| about.uri.clone());
        let own = own.filter(|own| access.resource_uri(entry.name(), own));
        let uri = own.unwrap_or(host);
        let new = Arc::new(ServedResource::new(
            uri.clone(),
            entry.clone(),
            Arc::clone(source),
        ));
        let resources = &mut self.documents.resources;
        if let Some(first) = resources.insert(uri.clone(), Arc::clone(&new)) {
            let first = (first.source.as_ref(), first.path.as_str());
            return Err(clash(
                "resource",
                &uri,
                first,
                (source.as_ref(), &entry.path),
            ));
        }
        Ok(Some(new))
    }

    /// All of them, if no URI means two.
    pub(super) fn finish(self) -> Result<Documents, DocumentsError> {
        let documents = self.documents;
        let templates: Vec<_> = documents.templates.values().collect();
        for (index, template) in templates.iter().enumerate() {
            let mut others = templates.iter().take(index);
            if let Some(first) = others.find(|other| other.template.overlaps(&template.template)) {
                return Err(clash(
                    "template",
                    template.template.as_str(),
                    (&first.source, &first.path),
                    (&template.source, &template.path),
                ));
            }
        }
        for resource in documents.resources.values() {
            // A bundle's own file is the exception to its own template.
            let mut others = templates.iter();
            let other = others.find(|template| {
                template.source != resource.source && template.values(&resource.uri).is_some()
            });
            if let Some(template) = other {
                return Err(clash(
                    "resource",
                    &resource.uri,
                    (&template.source, &template.path),
                    (&resource.source, &resource.path),
                ));
            }
        }
        Ok(documents)
    }
}

fn clash(
    kind: &'static str,
    name: &str,
    first: (&Source, &str),
    second: (&Source, &str),
) -> DocumentsError {
    DocumentsError::Clash {
        kind,
        name: name.to_owned(),
        first: first.0.place(first.1),
        second: second.0.place(second.1),
    }
}
