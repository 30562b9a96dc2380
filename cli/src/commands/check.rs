//! `check`: diagnostics of a file, a bundle, or a directory of bundles. With `--explain` it prints
//! the meaning of a code, from the tables from which the book's pages are made.

use toolward_author::against::Earlier;
use toolward_author::check::{CheckOptions, ImportFormat, check_with};
use toolward_support::fields::nearest;
use toolward_support::report::Code as Row;

use crate::codes::rows;
use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle's directory, a directory of bundles, or one file
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Fail on warnings too
    #[arg(long)]
    deny_warnings: bool,

    /// Compare the contracts with an earlier release: a bundle's directory or archive
    #[arg(long, value_name = "BUNDLE")]
    against: Option<PathBuf>,

    /// Explain this code and what to do about it, instead of checking
    #[arg(long, value_name = "CODE", conflicts_with_all = ["path", "deny_warnings", "against"])]
    explain: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<Exit> {
    if let Some(code) = &arguments.explain {
        return explain(code, context).map(|()| Exit::Fine);
    }
    let path = &arguments.path;
    let against = arguments.against.as_deref();
    let earlier = against.map(Earlier::read).transpose().map_err(packed)?;
    let options = CheckOptions {
        earlier: earlier.as_ref(),
        formats: FORMATS,
    };
    let report = check_with(path, &options);
    // Without a readable bundle.toml there is no id, and an error states the reason.
    if let (Some(old), Some(earlier)) = (against, &earlier)
        && report.compared == 0
        && report.errors() == 0
    {
        let (path, old, id) = (path.display(), old.display(), &earlier.id);
        let message = format!("{path} has no bundle with the id of {old}, {id}");
        let failure = Failure::usage(Code::BundleOther, message);
        return Err(failure.hint("name an earlier release of the bundle that is checked"));
    }
    for diagnostic in &report.diagnostics {
        context.diagnostic(diagnostic)?;
    }
    let (errors, warnings) = (report.errors(), report.warnings());
    context.note(format!(
        "{}: {} checked, {}, {}",
        path.display(),
        counted(report.documents, "document"),
        counted(errors, "error"),
        counted(warnings, "warning")
    ));
    let failed = errors > 0 || (arguments.deny_warnings && warnings > 0);
    Ok(if failed { Exit::Failed } else { Exit::Fine })
}

/// The formats of other hosts' documents, from which bundles can be made.
#[cfg(feature = "adapters")]
const FORMATS: &[&dyn ImportFormat] = toolward_adapters::import::FORMATS;
#[cfg(not(feature = "adapters"))]
const FORMATS: &[&dyn ImportFormat] = &[];

/// The row with the meaning of a code.
fn row(code: &str) -> Option<&'static Row> {
    rows().find(|row| row.code == code && !row.meaning.is_empty())
}

fn explain(code: &str, context: &Context) -> Result {
    let Some(row) = row(code) else {
        let hint = match nearest(code, rows().map(|row| row.code)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "the book lists all codes: `Diagnostics`, `Refusals`, `Errors of the command` \
                     and `Results and error codes`"
                .to_owned(),
        };
        let message = format!("no explanation has the code {code}");
        return Err(Failure::usage(Code::NotExplained, message).hint(hint));
    };
    if context.json() {
        return context.value(&json!({
            "ok": true,
            "code": row.code,
            "severity": row.severity,
            "meaning": row.meaning,
            "advice": Some(row.advice).filter(|advice| !advice.is_empty()),
        }));
    }
    let meaning = row.meaning.trim_end_matches('.');
    let advice = match row.advice {
        "" => String::new(),
        advice => format!("\n\n{advice}"),
    };
    context.line(format_args!(
        "{}[{}]: {meaning}{advice}",
        row.severity, row.code
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::TABLES;

    /// The codes in the first column of a page's tables.
    fn listed(page: &str) -> Vec<String> {
        let path = format!("{}/../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a page of the book");
        let cells = text.lines().filter_map(|line| {
            line.strip_prefix("| ")?
                .split(" |")
                .next()
                .map(str::to_owned)
        });
        let codes = cells.flat_map(|cell| {
            let codes: Vec<_> = cell
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            codes
        });
        codes.collect()
    }

    #[test]
    fn each_code_of_the_book_has_a_meaning() {
        let pages = [
            ("command-errors.md", 200),
            ("reference/diagnostics.md", 100),
            ("reference/refusals.md", 30),
            ("reference/outgoing-requests.md", 40),
        ];
        for (page, least) in pages {
            let codes = listed(page);
            assert!(codes.len() >= least, "{page}: {}", codes.len());
            for code in codes {
                assert!(row(&code).is_some(), "{page}: {code}");
            }
        }
    }

    #[test]
    fn each_code_that_is_printed_has_a_meaning() {
        for printed in rows() {
            assert!(row(printed.code).is_some(), "{}", printed.code);
        }
    }

    #[test]
    fn each_page_names_the_codes_of_its_tables() {
        for (page, tables) in TABLES {
            let path = format!("{}/../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("a page of the book");
            for row in tables.iter().flat_map(|table| table.iter()) {
                assert!(text.contains(row.code), "{page}: {}", row.code);
            }
        }
    }
}
