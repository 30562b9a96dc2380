//! Runs the commands of one page, in order, in one shell.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::expected;
use super::markdown::{Block, Page};

/// Longest time for a page, in seconds. A page may build a driver.
const PATIENCE: u32 = 1200;

/// One command, with its outcome as the page shows it.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) command: String,
    pub(super) expected: Vec<String>,
    pub(super) status: i32,
}

/// Returns the commands of a block. Lines that start with `$ ` are commands. A command continues
/// after a line that ends in a backslash, and in lines that start with `> `. The other lines are
/// output; `[exit N]` is a status other than 0.
pub(super) fn steps(block: &Block) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (offset, line) in block.lines.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: block.line + offset,
                command: command.to_owned(),
                expected: Vec::new(),
                status: 0,
            });
            continue;
        }
        let step = steps
            .last_mut()
            .unwrap_or_else(|| panic!("line {}: output before any command", block.line));
        if step.expected.is_empty() && step.command.ends_with('\\') {
            step.command.push('\n');
            step.command.push_str(line);
        } else if step.expected.is_empty()
            && let Some(more) = line.strip_prefix("> ")
        {
            step.command.push('\n');
            step.command.push_str(more);
        } else if let Some(status) = exit_status(line) {
            step.status = status;
        } else {
            step.expected.push(line.clone());
        }
    }
    steps
}

fn exit_status(line: &str) -> Option<i32> {
    line.strip_prefix("[exit ")?.strip_suffix(']')?.parse().ok()
}

/// Returns all commands of a page that a test runs.
pub(super) fn runnable(page: &Page) -> Vec<Step> {
    let blocks = page.blocks();
    let console = blocks.iter().filter(|block| block.language == "console");
    console.flat_map(steps).collect()
}

/// Runs the steps with the environment and directory of `shell`, and reports the first step whose
/// outcome differs from the page.
pub(super) fn run(page: &Path, steps: &[Step], mut shell: Command, records: &Path) {
    let output = |number: usize| records.join(format!("{number}.output"));
    let status = |number: usize| records.join(format!("{number}.status"));
    let mut script = String::new();
    for (number, step) in steps.iter().enumerate() {
        // A group instead of a subshell, so that `cd` and variables stay for the next command.
        write!(
            script,
            "{{\n{}\n}} >'{}' 2>&1 </dev/null\n_status=$?\necho $_status >'{}'\n\
             [ $_status -eq {} ] || exit 99\n",
            step.command,
            output(number).display(),
            status(number).display(),
            step.status,
        )
        .unwrap();
    }
    let file = records.join("script");
    std::fs::write(&file, script).unwrap();
    // Errors of the shell itself, for example for an unclosed quote.
    let complaints = shell
        .arg(PATIENCE.to_string())
        .arg("bash")
        .arg(&file)
        .output()
        .unwrap();

    for (number, step) in steps.iter().enumerate() {
        let place = format!("{}:{}: `{}`", page.display(), step.line, step.command);
        let actual = String::from_utf8_lossy(&std::fs::read(output(number)).unwrap_or_default())
            .into_owned();
        let ended = std::fs::read_to_string(status(number)).unwrap_or_else(|_| {
            panic!(
                "{place} did not end ({}):\n{actual}\n{}",
                complaints.status,
                String::from_utf8_lossy(&complaints.stderr)
            )
        });
        assert_eq!(
            ended.trim(),
            step.status.to_string(),
            "exit status of {place}:\n{actual}"
        );
        assert!(
            expected::matches(&step.expected, &actual),
            "{place} printed\n\n{actual}\n\nwhere the page shows\n\n{}\n",
            step.expected.join("\n")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        Block {
            language: "console".to_owned(),
            line: 10,
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn commands_go_on_over_backslashes_and_prompts_and_end_with_a_status() {
        let steps = steps(&block("$ a \\\n  b\nout\n[exit 3]\n$ cat <<E\n> x\n> E\n"));
        assert_eq!(steps[0].command, "a \\\n  b");
        assert_eq!(
            (steps[0].expected.as_slice(), steps[0].status),
            (&["out".to_owned()][..], 3)
        );
        assert_eq!(
            (steps[1].command.as_str(), steps[1].line),
            ("cat <<E\nx\nE", 14)
        );
    }

    fn try_page(text: &str) -> std::thread::Result<()> {
        let records = tempfile::tempdir().unwrap();
        let mut shell = Command::new("timeout");
        shell.current_dir(records.path());
        let steps = steps(&block(text));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            run(Path::new("page.md"), &steps, shell, records.path());
        }))
    }

    #[test]
    fn a_page_whose_commands_do_what_it_says_passes() {
        try_page("$ x=1; cd /\n$ echo $x $PWD; false\n1 /\n[exit 1]\n").unwrap();
    }

    #[test]
    fn wrong_output_a_wrong_status_and_broken_syntax_are_noticed() {
        for page in [
            "$ echo a\nb\n",
            "$ false\n",
            "$ true\n[exit 1]\n",
            "$ echo 'a\n",
        ] {
            assert!(try_page(page).is_err(), "{page}");
        }
    }
}
