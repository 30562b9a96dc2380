//! Reads the part of Markdown that the tests need: fenced blocks.

use std::path::{Path, PathBuf};

/// One file of README or the book.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) path: PathBuf,
    lines: Vec<String>,
}

/// A fenced block.
#[derive(Debug)]
pub(super) struct Block {
    /// The text after the opening fence, such as `console,norun`.
    pub(super) language: String,
    /// The number of its first line in the file, from 1.
    pub(super) line: usize,
    pub(super) lines: Vec<String>,
}

impl Page {
    pub(super) fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::new(path, &text)
    }

    pub(super) fn new(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut lines = self.lines.iter().enumerate();
        while let Some((_, line)) = lines.next() {
            let Some((fence, language)) = fence(line) else {
                continue;
            };
            let mut block = Block {
                language: language.to_owned(),
                line: 0,
                lines: Vec::new(),
            };
            for (number, line) in lines.by_ref() {
                if line.trim() == fence {
                    break;
                }
                if block.line == 0 {
                    block.line = number + 1;
                }
                block.lines.push(line.clone());
            }
            blocks.push(block);
        }
        blocks
    }

    pub(super) fn text(&self) -> String {
        self.lines.join("\n")
    }
}

/// The fence and the language of a line that opens a block.
fn fence(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let length = line.len() - line.trim_start_matches('`').len();
    (length >= 3).then(|| line.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_knows_its_language_and_its_place() {
        let page = Page::new(
            Path::new("page.md"),
            "# A\n```console\n$ a\n```\n````md\n```\n````\n",
        );
        let blocks = page.blocks();
        assert_eq!(
            (blocks[0].language.as_str(), blocks[0].line),
            ("console", 3)
        );
        assert_eq!(blocks[0].lines, ["$ a"]);
        assert_eq!(blocks[1].lines, ["```"]);
    }
}
