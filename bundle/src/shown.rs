//! Prompts and resources, which a bundle may show to people and models through a client, and checks
//! of these documents against the bundle's files. Access is decided elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolward_contract::argument::Text;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::prompt::{Part, Prompt};
use toolward_contract::resource::{Resource, SIDECAR};
use toolward_signing::manifest::FileRole;
use toolward_support::fields::NearNames;

use crate::codes;
use crate::documents::{Documents, Located, ids, is_prompt, role_of};
use crate::files::Files;
use crate::locate::{about_file, repeated};

/// The folder of resources, with its slash.
pub const RESOURCES: &str = "resources/";

/// How large a served resource may be, in bytes, and how large all files that a prompt embeds may
/// be together. A client reads a resource or a prompt as one message.
pub const MAX_RESOURCE: usize = 8 * 1024 * 1024;

/// A file below `resources/` and its sidecar, the file `NAME.resource.md` that describes it.
#[derive(Debug, Clone)]
pub struct ResourceEntry {
    /// The name of the file.
    pub path: String,
    /// Its bytes.
    pub bytes: Arc<[u8]>,
    /// Its sidecar, if it has one.
    pub about: Option<Arc<Resource>>,
    /// Its media type.
    pub media_type: String,
}

impl ResourceEntry {
    /// The path below `resources/`.
    pub fn name(&self) -> &str {
        self.path.strip_prefix(RESOURCES).unwrap_or(&self.path)
    }

    /// Whether it is small enough to be served.
    pub fn is_servable(&self) -> bool {
        self.bytes.len() <= MAX_RESOURCE
    }

    /// Its text; `None` if its media type or its bytes are not text.
    pub fn text(&self) -> Option<&str> {
        if !is_text(&self.media_type) {
            return None;
        }
        std::str::from_utf8(&self.bytes).ok()
    }
}

/// The resources among a bundle's files, by path.
pub(crate) fn resources(documents: &Documents, files: &Files) -> Vec<ResourceEntry> {
    let sidecars = documents.sidecars.iter();
    let about: BTreeMap<&str, &Arc<Resource>> = sidecars
        .filter_map(|sidecar| Some((sidecar.path.strip_suffix(SIDECAR)?, &sidecar.value)))
        .collect();
    let files = files.iter().filter(|(path, _)| is_resource(path));
    files
        .map(|(path, bytes)| {
            let about = about.get(path.as_str()).copied().cloned();
            let declared = about.as_ref().and_then(|about| about.mime_type.clone());
            ResourceEntry {
                path: path.clone(),
                bytes: Arc::clone(bytes),
                media_type: declared.unwrap_or_else(|| media_type_of(path, bytes).to_owned()),
                about,
            }
        })
        .collect()
}

/// Whether a file is a resource, and not a sidecar.
fn is_resource(path: &str) -> bool {
    role_of(path) == FileRole::Resource && !path.ends_with(SIDECAR)
}

/// Checks prompts and sidecars against the files that they name, and against each other.
pub(crate) fn check(documents: &Documents, files: &Files) -> Vec<Diagnostic> {
    let resources = resources(documents, files);
    let by_path: BTreeMap<&str, &ResourceEntry> = resources
        .iter()
        .map(|entry| (entry.path.as_str(), entry))
        .collect();
    let mut diagnostics = Vec::new();
    let unread = |path: &str| {
        let sidecar = format!("{path}{SIDECAR}");
        let mut sidecars = documents.unread_of(FileRole::Resource);
        sidecars.any(|unread| unread.path == sidecar)
    };
    let mut near = NearNames::default();
    for prompt in &documents.prompts {
        embedded(prompt, &by_path, &unread, &mut near, &mut diagnostics);
    }
    for sidecar in &documents.sidecars {
        let file = sidecar.path.strip_suffix(SIDECAR).unwrap_or_default();
        match by_path.get(file) {
            Some(entry) => template(sidecar, entry, &mut diagnostics),
            None => {
                let near = near.find(file, by_path.keys().copied());
                let hint = near.map(|near| format!("did you mean `{near}{SIDECAR}`?"));
                diagnostics.push(about_file(
                    &sidecar.path,
                    &codes::RESOURCE_SIDECAR,
                    format!("expected a resource {file} beside it, found none"),
                    hint.as_deref()
                        .unwrap_or("a sidecar is named after the file that it is about"),
                ));
            }
        }
    }
    for entry in resources.iter().filter(|entry| !entry.is_servable()) {
        diagnostics.push(about_file(
            &entry.path,
            &codes::RESOURCE_TOO_LARGE,
            format!(
                "expected at most {MAX_RESOURCE} bytes to serve, found {}",
                entry.bytes.len()
            ),
            "split it, or let a tool give parts of it",
        ));
    }
    for path in files.keys() {
        if role_of(path) == FileRole::Prompt && !is_prompt(path) {
            diagnostics.push(about_file(
                path,
                &codes::PROMPT_STRAY,
                "expected a name that ends in .md, found another: this is not a prompt",
                "files that a prompt embeds lie below resources/",
            ));
        }
    }
    unique(documents, &mut diagnostics);
    diagnostics
}

/// Checks the files that a prompt embeds. `unread` reports whether a file's sidecar could not be
/// read; the media type of such a file is unknown.
fn embedded(
    prompt: &Located<Prompt>,
    resources: &BTreeMap<&str, &ResourceEntry>,
    unread: &dyn Fn(&str) -> bool,
    near: &mut NearNames,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut refuse = |line: u32, message: String, hint: &str| {
        let mut found = about_file(&prompt.path, &codes::PROMPT_FILE, message, hint);
        found.line = line;
        diagnostics.push(found);
    };
    let mut total = 0_usize;
    for message in &prompt.value.messages {
        let (path, line, media) = match &message.part {
            Part::Media { path, line } => (path, *line, true),
            Part::File { path, line } => (path, *line, false),
            _ => continue,
        };
        let Some(entry) = resources.get(path.as_str()) else {
            let near = near.find(path, resources.keys().copied());
            let hint = near.map(|near| format!("did you mean `{near}`?"));
            refuse(
                line,
                format!("expected a resource of this bundle, found {path}, which is none"),
                hint.as_deref().unwrap_or("add the file, or mend the path"),
            );
            continue;
        };
        let about = entry.about.as_ref();
        if about.is_some_and(|about| about.is_template()) {
            refuse(
                line,
                format!("expected a resource, found {path}, which is a template"),
                "embed a file without arguments",
            );
        } else if media && !is_shown(&entry.media_type) && !unread(path) {
            refuse(
                line,
                format!(
                    "expected an image or a sound, found {path} of {}",
                    entry.media_type
                ),
                "leave the `!` out to embed it as a resource",
            );
        }
        total = total.saturating_add(entry.bytes.len());
        if total > MAX_RESOURCE {
            refuse(
                line,
                format!("expected at most {MAX_RESOURCE} bytes of files in a prompt, found more"),
                "embed less",
            );
            return;
        }
    }
}

/// Checks the text of a template.
fn template(sidecar: &Located<Resource>, entry: &ResourceEntry, diagnostics: &mut Vec<Diagnostic>) {
    if !sidecar.value.is_template() {
        return;
    }
    match entry.text() {
        Some(text) => {
            diagnostics.extend(sidecar.value.check_text(&entry.path, &Text::parse(text)));
        }
        None => diagnostics.push(about_file(
            &sidecar.path,
            &codes::RESOURCE_TEMPLATE,
            format!(
                "expected text to fill in, found {} of {}",
                entry.path, entry.media_type
            ),
            "remove `arguments`, or give `mime_type` if it is text",
        )),
    }
}

/// Finds ids, names and URIs that two documents claim.
fn unique(documents: &Documents, diagnostics: &mut Vec<Diagnostic>) {
    let (prompts, sidecars) = (&documents.prompts, &documents.sidecars);
    let of_prompts = ids(prompts, |prompt| Some(prompt.id.to_string()));
    repeated("prompt id", of_prompts, diagnostics);
    let names = ids(prompts, |prompt| prompt.mcp_name.clone());
    repeated("prompt name", names, diagnostics);
    let uris = ids(sidecars, |sidecar| sidecar.uri.clone());
    repeated("resource URI", uris, diagnostics);
    let templates: Vec<_> = ids(sidecars, |sidecar| sidecar.uri_template.as_ref()).collect();
    for (index, (template, path)) in templates.iter().enumerate() {
        let mut before = templates.iter().take(index);
        if let Some((other, first)) = before.find(|(other, _)| other.overlaps(template)) {
            diagnostics.push(about_file(
                path,
                &codes::DUPLICATE_ID,
                format!("a URI can fit the template {template} and {other} of {first}"),
                "let one of them begin otherwise",
            ));
        }
    }
}

/// The known endings of file names, with their media types.
const ENDINGS: &[(&str, &str)] = &[
    ("aac", "audio/aac"),
    ("avif", "image/avif"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("flac", "audio/flac"),
    ("gif", "image/gif"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("m4a", "audio/mp4"),
    ("md", "text/markdown"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("txt", "text/plain"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The media type of a file, by the ending of its name. A file with an unknown ending is text if it
/// is UTF-8.
fn media_type_of(path: &str, bytes: &[u8]) -> &'static str {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let mut endings = ENDINGS.iter();
    match endings.find(|(known, _)| ending.eq_ignore_ascii_case(known)) {
        Some((_, media_type)) => media_type,
        None if std::str::from_utf8(bytes).is_ok() => "text/plain",
        None => "application/octet-stream",
    }
}

/// Whether content of a media type is text.
fn is_text(media_type: &str) -> bool {
    let (kind, subtype) = media_type.split_once('/').unwrap_or_default();
    kind == "text"
        || ["+json", "+xml", "+yaml"]
            .iter()
            .any(|suffix| subtype.ends_with(suffix))
        || (kind == "application"
            && ["json", "jsonl", "xml", "yaml", "toml", "javascript"].contains(&subtype))
}

/// Whether clients show content of a media type as an image or a sound.
fn is_shown(media_type: &str) -> bool {
    media_type.starts_with("image/") || media_type.starts_with("audio/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_the_media_type_and_else_the_bytes() {
        assert_eq!(media_type_of("resources/a.PNG", b"x"), "image/png");
        assert_eq!(media_type_of("resources/README", b"x"), "text/plain");
        assert_eq!(
            media_type_of("resources/a.unknown", b"\xff"),
            "application/octet-stream"
        );
    }

    #[test]
    fn what_is_text_is_told_by_the_media_type() {
        for text in [
            "text/x",
            "application/json",
            "image/svg+xml",
            "application/ld+json",
        ] {
            assert!(is_text(text), "{text}");
        }
        for other in [
            "image/png",
            "application/pdf",
            "application/octet-stream",
            "",
        ] {
            assert!(!is_text(other), "{other}");
        }
    }
}
