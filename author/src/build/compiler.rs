//! How the tools of a build name themselves: name and version, for the provenance.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use toolward_bundle::text::visible_line;

use super::error::BuildError;
use super::tool::Tool;

/// The most characters of a name with its version.
const MAX_NAME_CHARS: usize = 200;

/// The most bytes that are read of a tool's answer about its version.
const MAX_ANSWER_BYTES: u64 = 4096;

/// The most bytes of a JSON file with a version.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A tool's name with its version; the name alone if it gives none: the
/// component is built by then, and does not fail for it.
pub(super) fn ask(name: &str, tool: Tool) -> String {
    named(name, &answer(tool).unwrap_or_default())
}

/// A name and a version as one, made safe to show.
pub(super) fn named(name: &str, version: &str) -> String {
    let line = version.lines().next().unwrap_or_default().trim();
    let whole = match line {
        "" => name.to_owned(),
        line if line.contains(name) => line.to_owned(),
        line => format!("{name} {line}"),
    };
    visible_line(&whole, MAX_NAME_CHARS)
}

fn answer(mut tool: Tool) -> Option<String> {
    tool.stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let unusable = |program, source| BuildError::Tool { program, source };
    let mut child = tool.start(unusable).ok()?;
    let mut bytes = Vec::new();
    // The end of it closes the pipe: a tool with a longer answer fails, and has no version.
    let read = child
        .stdout
        .take()
        .map(|stdout| stdout.take(MAX_ANSWER_BYTES).read_to_end(&mut bytes));
    let status = child.wait().ok()?;
    read?.ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    status.success().then_some(text)
}

/// A JSON file, if it is one and of reasonable size.
pub(super) fn read_json(path: &Path) -> Option<Value> {
    let file = toolward_support::files::open_regular(path).ok()?;
    let bytes = toolward_support::files::read(file, path, MAX_FILE_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn tool(program: &str) -> Tool {
        Tool::unconfined(Command::new(program))
    }

    fn says(script: &str) -> String {
        let mut shell = tool("sh");
        shell.args(["-c", script]);
        ask("tool", shell)
    }

    #[test]
    fn a_tool_is_named_by_the_first_line_of_its_answer() {
        assert_eq!(says("echo 1.2.3; echo more"), "tool 1.2.3");
        assert_eq!(
            says("echo 'ACME tool version 3 (x)'"),
            "ACME tool version 3 (x)"
        );
    }

    #[test]
    fn a_tool_that_says_nothing_useful_has_its_name_alone() {
        for script in [
            "true",
            "echo 1; false",
            "echo >&2 1",
            "while echo 1; do :; done",
        ] {
            assert_eq!(says(script), "tool", "{script}");
        }
        let empty = tempfile::tempdir().unwrap();
        let missing = empty.path().join("tool");
        assert_eq!(ask("tool", tool(missing.to_str().unwrap())), "tool");
    }

    #[test]
    fn a_version_hides_nothing_and_has_an_end() {
        assert_eq!(named("tool", "1\u{202e}2"), "tool 1\\u{202e}2");
        assert!(named("tool", &"1".repeat(10_000)).chars().count() < 300);
    }
}
