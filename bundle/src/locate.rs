//! Diagnostics about places in a source text.

use toolward_contract::diagnostic::{Diagnostic, Position, Severity};

/// One source text with its name.
pub(crate) struct Locator<'a> {
    file: &'a str,
    source: &'a str,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(file: &'a str, source: &'a str) -> Self {
        Self { file, source }
    }

    pub(crate) fn error(
        &self,
        offset: usize,
        code: &'static str,
        message: String,
        hint: Option<&str>,
    ) -> Diagnostic {
        let at = Position::of_offset(self.source, offset);
        Diagnostic {
            code,
            severity: Severity::Error,
            message,
            file: self.file.to_owned(),
            line: at.line,
            column: at.column,
            hint: hint.map(str::to_owned),
        }
    }
}

/// A diagnostic about a file as a whole: line 1, column 1.
pub(crate) fn whole(
    file: &str,
    severity: Severity,
    code: &'static str,
    message: String,
    hint: Option<String>,
) -> Diagnostic {
    Diagnostic {
        code,
        severity,
        message,
        file: file.to_owned(),
        line: 1,
        column: 1,
        hint,
    }
}

/// Where a top-level key of a document's front matter stands; the start of the
/// document if it isn't there.
pub(crate) fn key_position(source: &str, key: &str) -> (u32, u32) {
    let mut lines = source.lines();
    if lines.next() != Some("---") {
        return (1, 1);
    }
    lines
        .take_while(|line| *line != "---")
        .zip(2u32..)
        .find(|(line, _)| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.trim_start().starts_with(':'))
        })
        .map_or((1, 1), |(_, number)| (number, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_the_front_matter_only() {
        let source = "---\nid: a\nkind: x\n---\nbody: y\n";
        assert_eq!(key_position(source, "kind"), (3, 1));
        assert_eq!(key_position(source, "body"), (1, 1));
    }
}
