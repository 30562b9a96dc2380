//! Front matter with frequent YAML mistakes: each is reported with a hint.

use toolward_contract::NoScope;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::tool::Tool;

/// The text below `id`, `version` and the schemas; the code of the finding, empty if there is none;
/// a part of the message or of the hint.
const MISTAKES: [(&str, &str, &str); 40] = [
    // Comments.
    ("description: Sorts by issue#12 first.\n", "", ""),
    (
        "description: Lists issue # 12 and others.\n",
        "description-cut",
        "quotation marks",
    ),
    (
        "description: Fetches # a page\n",
        "description-cut",
        "\"# a page\"",
    ),
    ("description: 'Lists issue # 12.'\n", "", ""),
    ("description: >-\n  Lists issue # 12.\n", "", ""),
    (
        "description: Lists.\ncost_class: trivial # nothing\n",
        "",
        "",
    ),
    ("description: Lists.\nrisk_level: 0 # none\n", "", ""),
    (
        "description: Lists.\nname: Issue list # of a project\n",
        "text-cut",
        "quotation marks",
    ),
    (
        "description: Lists # all\n  issues.\n",
        "description-cut",
        "# all",
    ),
    // Colons.
    (
        "description: Note: lists issues.\n",
        "yaml-syntax",
        "quotation marks",
    ),
    ("description: Lists a:b.\n", "", ""),
    ("description: \"Note: lists issues.\"\n", "", ""),
    (
        "description:Lists issues.\n",
        "yaml-syntax",
        "a colon and a space",
    ),
    (
        "description: Lists.\nname: A: B\n",
        "yaml-syntax",
        "quotation marks",
    ),
    // Special characters at the start of a text.
    (
        "description: @all issues.\n",
        "yaml-syntax",
        "quotation marks",
    ),
    (
        "description: `ls` for issues.\n",
        "yaml-syntax",
        "quotation marks",
    ),
    (
        "description: %d issues.\n",
        "yaml-syntax",
        "quotation marks",
    ),
    ("description: *all* issues.\n", "yaml-alias", ""),
    ("description: &all issues.\n", "yaml-alias", ""),
    ("description: !important Lists.\n", "yaml-tag", ""),
    ("description: [beta] Lists.\n", "yaml-syntax", "bracket"),
    ("description: {beta} Lists.\n", "yaml-syntax", "spaces"),
    (
        "description: - Lists.\n",
        "yaml-syntax",
        "line after its key",
    ),
    // Quotation marks.
    ("description: 'It's a list.'\n", "yaml-syntax", "twice"),
    (
        "description: \"A \"list\" of issues.\"\n",
        "yaml-syntax",
        "quotation mark",
    ),
    ("description: \"A\\d list.\"\n", "yaml-syntax", "backslash"),
    (
        "description: \"Lists issues.\n",
        "yaml-syntax",
        "close the quotation mark",
    ),
    (
        "description: 'Lists issues.\n",
        "yaml-syntax",
        "close the quotation mark",
    ),
    // Indentation and lists.
    (
        "description: Lists.\nrequires:\n\tsecrets: []\n",
        "yaml-syntax",
        "spaces",
    ),
    (
        "description: Lists.\n  name: List\n",
        "yaml-syntax",
        "quotation marks",
    ),
    (
        "description: Lists.\n name: List\n",
        "yaml-syntax",
        "quotation marks",
    ),
    (
        "description: |\nLists.\n",
        "yaml-syntax",
        "a colon and a space",
    ),
    (
        "description: Lists.\nmutates: []]\n",
        "yaml-syntax",
        "bracket",
    ),
    (
        "description: Lists.\nmutates: [filesystem:/a\n",
        "yaml-syntax",
        "bracket",
    ),
    // Keys and values.
    (
        "description: Lists.\ndescription: Again.\n",
        "yaml-duplicate-key",
        "line 7",
    ),
    ("description: yes\n", "", ""),
    ("description: true\n", "wrong-type", "text"),
    ("description: 12\n", "wrong-type", "text"),
    ("description: ~\n", "wrong-type", "text"),
    (
        "description: Lists.\n---\nid: other.one\n...\n",
        "missing-field",
        "`name`",
    ),
];

fn findings(fields: &str) -> Vec<Diagnostic> {
    let head = "id: issue.list\nversion: 1.0.0\ninputs: { type: object }\noutputs: { type: object }\nidempotent: true\n";
    let name = match fields.contains("name:") {
        true => "",
        false => "name: List\n",
    };
    let text = format!("---\n{head}{fields}{name}---\n");
    Tool::parse("TOOL.md", &text, &NoScope).diagnostics
}

#[test]
fn each_mistake_in_yaml_is_found_with_the_next_step() {
    let mut wrong = Vec::new();
    for (fields, code, part) in MISTAKES {
        let found = findings(fields);
        let fits = match found.first() {
            None => code.is_empty(),
            Some(first) => {
                let text = format!(
                    "{} {}",
                    first.message,
                    first.hint.as_deref().unwrap_or_default()
                );
                first.code == code && text.contains(part)
            }
        };
        if !fits {
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            wrong.push(format!(
                "{fields:?} should give {code:?}, {part:?}: {found:#?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_description_that_a_comment_cuts_is_refused_wherever_it_is() {
    let deep = "description: Lists.\ncontextSchema:\n  type: object\n  properties:\n    a: { type: string, description: One # two\n      }\n";
    assert_eq!(
        findings(deep).first().map(|found| found.code),
        Some("description-cut")
    );
}
