//! Corpora of documents that describe themselves in comments at the start: the tested rule
//! (`# rule: …`), the expected diagnostics (`# gives: …`, each with code and line), and further
//! keys of a corpus.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toolward_contract::Diagnostic;

/// One document of a corpus.
pub(crate) struct Document {
    pub(crate) name: String,
    pub(crate) is_valid: bool,
    pub(crate) text: String,
    notes: BTreeMap<String, String>,
}

impl Document {
    fn read(path: &Path, is_valid: bool) -> Document {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines = text.lines().skip_while(|line| *line == "---");
        let comments = lines.map_while(|line| line.strip_prefix("# "));
        let notes = comments.map(|comment| {
            let (key, note) = comment.split_once(':').expect("a comment is `key: text`");
            (key.to_owned(), note.trim().to_owned())
        });
        Document {
            name: path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            is_valid,
            notes: notes.collect(),
            text,
        }
    }

    /// The comment with this key; empty if it is missing.
    pub(crate) fn note(&self, key: &str) -> &str {
        self.notes.get(key).map_or("", String::as_str)
    }
}

/// The documents below `valid` and `invalid` of a folder, in a stable order.
pub(crate) fn documents(corpus: &Path) -> Vec<Document> {
    let mut documents = Vec::new();
    for (folder, is_valid) in [("valid", true), ("invalid", false)] {
        let entries = fs::read_dir(corpus.join(folder)).expect("the corpus is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        documents.extend(paths.map(|path| Document::read(&path, is_valid)));
    }
    documents.sort_by(|a, b| (a.is_valid, &a.name).cmp(&(b.is_valid, &b.name)));
    documents
}

/// The documents of a corpus that differ from their comments or folder: their result does not match
/// the folder, their diagnostics differ, or they name no rule.
pub(crate) fn wrong(
    documents: &[Document],
    findings: impl Fn(&Document) -> Vec<Diagnostic>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for document in documents {
        let found = findings(document);
        let gives: Vec<String> = found
            .iter()
            .map(|one| format!("{}:{}", one.code, one.line))
            .collect();
        let refused = found.iter().any(Diagnostic::is_error);
        let says = document.note("gives");
        if refused == document.is_valid || gives.join(" ") != says {
            wrong.push(format!("{} ({says}): {found:?}", document.name));
        }
        if document.note("rule").is_empty() {
            wrong.push(format!("{}: stands for no rule", document.name));
        }
    }
    wrong
}
