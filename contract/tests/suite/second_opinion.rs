//! The results of a specification's rules alone for a corpus, compared with the comments of its
//! documents, which may give a reason for a difference (`# schema: valid`, `# why: …`).

use serde_json::Value;
use toolward_contract::NoScope;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;

use crate::noted::Document;

/// The documents for which `rules` give another result than the comments state, or that lack a
/// reason for a difference.
pub(crate) fn disagreements<'a>(
    documents: impl IntoIterator<Item = &'a Document>,
    rules: &Value,
) -> Vec<String> {
    let rules = Schema::compile(rules, &NoScope).expect("the rules are a schema");
    let mut wrong = Vec::new();
    for document in documents {
        let expected = match document.note("schema") {
            "" => document.is_valid,
            "valid" => true,
            "invalid" => false,
            other => panic!("{}: {other}", document.name),
        };
        let found = rules.validate(&front_matter(&document.text));
        if found.is_ok() != expected {
            wrong.push(format!("{}: {found:?}", document.name));
        }
        let differs = expected != document.is_valid;
        if differs == document.note("why").is_empty() {
            wrong.push(format!(
                "{}: a reason goes with a difference",
                document.name
            ));
        }
    }
    wrong
}

/// The front matter as JSON, read by the reader under test as a part of a contract's metadata,
/// which is stored as written.
fn front_matter(text: &str) -> Value {
    let inner = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    let (inner, _) = inner.expect("front matter");
    let indented: String = inner.lines().map(|line| format!("    {line}\n")).collect();
    let tool = format!(
        "---\nname: A\nid: a.b\ndescription: A.\nversion: 1.0.0\ninputs: {{ type: object }}\noutputs: {{}}\n\
         metadata:\n  document:\n{indented}---\n"
    );
    let tool = Tool::parse("TOOL.md", &tool, &NoScope).into_result();
    tool.unwrap_or_else(|found| panic!("{found:?}\n{text}"))
        .metadata["document"]
        .clone()
}
