//! The messages in the text of a prompt.

use std::borrow::Cow;

use toolward_contract::prompt::{Message, Part, Prompt, PromptRole};

fn messages(body: &str) -> Vec<Message> {
    let source = format!(
        "---\nid: acme.sum\nname: Sum\ndescription: Sums up.\narguments:\n  - name: a\n  - name: b\n---\n{body}"
    );
    let parsed = Prompt::parse("prompts/sum.md", &source);
    parsed.value.expect("a prompt").messages
}

/// A message in one line: the first letter of the role, and the content.
fn shown(message: &Message) -> String {
    let role = match message.role {
        PromptRole::User => 'u',
        PromptRole::Assistant => 'a',
    };
    let part = match &message.part {
        Part::Text(text) => text
            .fill(10_000, Cow::Borrowed, |name| {
                Cow::Owned(format!("<{name}>"))
            })
            .expect("a short text"),
        Part::Media { path, line } => format!("media {path} {line}"),
        Part::File { path, line } => format!("file {path} {line}"),
        Part::Chosen { argument, line } => format!("chosen {argument} {line}"),
        other => panic!("{other:?}"),
    };
    format!("{role}: {part}")
}

fn all(body: &str) -> Vec<String> {
    messages(body).iter().map(shown).collect()
}

#[test]
fn text_is_one_message_without_the_blank_lines_around_it() {
    assert_eq!(
        all("\n\n One {{a}}.\n\n\nTwo.\n\n"),
        ["u:  One <a>.\n\n\nTwo."]
    );
}

#[test]
fn a_heading_of_a_role_begins_its_messages_and_other_headings_are_text() {
    assert_eq!(
        all("# Notes\nOne.\n# Assistant\n\nTwo.\n# user\nThree.\n## User\n"),
        ["u: # Notes\nOne.", "a: Two.", "u: Three.\n## User"]
    );
}

#[test]
fn a_line_that_is_a_link_to_a_resource_is_a_message_of_its_own() {
    assert_eq!(
        all(
            "One.\n![p](resources/p.png)\n[t](resources/a/t.txt)\n# Assistant\n[c]({{ b }})\nTwo.\n"
        ),
        [
            "u: One.",
            "u: media resources/p.png 10",
            "u: file resources/a/t.txt 11",
            "a: chosen b 13",
            "a: Two."
        ]
    );
}

#[test]
fn links_to_anywhere_else_and_within_a_line_stay_text() {
    let text =
        "[t](https://example.com/t)\nSee [t](resources/t.txt).\n![c]({{a}})\n[t](resources/a b)";
    assert_eq!(all(text), [format!("u: {}", text.replace("{{a}}", "<a>"))]);
}

#[test]
fn nothing_in_fenced_code_is_special_but_placeholders() {
    let text = "```md\n# Assistant\n[t](resources/t.txt)\n{{a}}\n~~~\n````\n# Assistant\nTwo.";
    assert_eq!(
        all(text),
        [
            "u: ```md\n# Assistant\n[t](resources/t.txt)\n<a>\n~~~\n````",
            "a: Two."
        ]
    );
}

#[test]
fn a_backslash_keeps_a_line_from_being_special_and_is_dropped() {
    assert_eq!(
        all("\\# User\n\\[t](resources/t.txt)\n\\![t](resources/t.png)\n\\x\n"),
        ["u: # User\n[t](resources/t.txt)\n![t](resources/t.png)\n\\x"]
    );
}

#[test]
fn line_ends_of_windows_are_line_ends() {
    assert_eq!(
        all("One.\r\n# Assistant\r\nTwo.\r\nThree.\r\n"),
        ["u: One.", "a: Two.\nThree."]
    );
}

#[test]
fn more_messages_than_are_allowed_are_refused_and_not_collected() {
    let source = |count| {
        format!(
            "---\nid: acme.sum\nname: Sum\ndescription: Sums up.\n---\n{}",
            "[t](resources/t)\n".repeat(count)
        )
    };
    assert!(Prompt::parse("p.md", &source(256)).value.is_some());
    let refused = Prompt::parse("p.md", &source(50_000));
    assert_eq!(refused.diagnostics.len(), 1);
    assert_eq!(refused.diagnostics[0].code, "prompt-messages");
}

#[test]
fn a_file_full_of_misspelt_names_is_told_of_in_few_words() {
    let names: String = (0..20_000)
        .map(|number| format!("{{{{x{number}}}}}\n"))
        .collect();
    let source = format!("---\nid: acme.sum\nname: Sum\ndescription: Sums up.\n---\n{names}");
    let refused = Prompt::parse("p.md", &source);
    assert_eq!(refused.diagnostics.len(), 20);
}
