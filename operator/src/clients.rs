//! `[clients]`: which MCP clients on the standard streams may ask their person for approval. A client's name proves
//! nothing; there it chooses among the programs that the operator starts. Clients over HTTP have tokens instead.

use std::path::Path;

use toolward_fields::{Field, Fields, Node, Span, parse_toml as parse};

use crate::error::{Code, Error, Kind};
use crate::setting_error::{self, SettingError};

const TABLE: &str = "clients";
const KEY: &str = "may_approve";
const INVALID_CODE: Code = Code::ClientSettingInvalid;

/// Longest name of a client, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Most names.
const MAX_NAMES: usize = 100;

/// The names in `may_approve` of `[clients]`, as the clients send them; none without such a table.
pub(crate) fn setting(text: &str, path: &Path) -> Result<Vec<String>, Error> {
    let invalid = |wrong| setting_error::invalid(INVALID_CODE, text, path, wrong);
    let document = document(text).map_err(invalid)?;
    match document.get(TABLE) {
        Some(table) => names(&Field::new("[clients]", table)).map_err(invalid),
        None => Ok(Vec::new()),
    }
}

/// Refuses `[clients]` in a file from `--policy`, where it would have no effect.
pub(crate) fn refuse_setting(text: &str, path: &Path) -> Result<(), Error> {
    let document = parse(text).ok();
    let Some(found) = document.as_ref().and_then(|document| document.get(TABLE)) else {
        return Ok(());
    };
    let wrong = SettingError::new(
        "expected no `[clients]` in a file of --policy",
        found.at.clone(),
    )
    .hint("`[clients]` belongs in toolward.toml, or in the file of --config");
    Err(setting_error::invalid(INVALID_CODE, text, path, wrong))
}

/// The text of a configuration in which `may_approve` has `added` as well; `None` if it has them already.
///
/// # Errors
/// `client-setting-invalid` if the table is wrong; `file-unfit` if it is written in a form in which nothing can be added.
pub fn allowing(text: &str, path: &Path, added: &[String]) -> Result<Option<String>, Error> {
    let known = setting(text, path)?;
    let missing: Vec<&String> = added.iter().filter(|name| !known.contains(name)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let wanted: Vec<String> = known.iter().chain(missing).cloned().collect();
    let list = toml::Value::from(wanted.clone());
    let document =
        document(text).map_err(|wrong| setting_error::invalid(INVALID_CODE, text, path, wrong))?;
    let table = document.get(TABLE);
    let after = match table.map(|table| (table.get(KEY), table)) {
        Some((Some(value), _)) => replaced(text, &value.at, &list.to_string()),
        Some((None, table)) => below_header(text, table, &format!("{KEY} = {list}\n")),
        None => {
            let end = match text {
                "" => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            Some(format!("{text}{end}[{TABLE}]\n{KEY} = {list}\n"))
        }
    };
    let written = |after: &String| setting(after, path).is_ok_and(|names| names == wanted);
    after.filter(written).map(Some).ok_or_else(|| {
        let message = format!(
            "{}: `[clients]` can't be changed as it is written",
            path.display()
        );
        Error::new(Kind::Failed, Code::FileUnfit, message)
            .hint(format!("write into `[{TABLE}]` yourself: {KEY} = {list}"))
    })
}

fn replaced(text: &str, at: &Span, by: &str) -> Option<String> {
    Some(format!(
        "{}{by}{}",
        text.get(..at.start)?,
        text.get(at.end..)?
    ))
}

fn below_header(text: &str, table: &Node<Span>, line: &str) -> Option<String> {
    let header = text.get(table.at.start..)?;
    let end = header
        .find('\n')?
        .checked_add(table.at.start)?
        .checked_add(1)?;
    replaced(text, &(end..end), line)
}

fn document(text: &str) -> Result<Node<Span>, SettingError> {
    parse(text)
        .map_err(|error| SettingError::new(error.message(), error.span().unwrap_or_default()))
}

fn names(table: &Field<'_, Span>) -> Result<Vec<String>, SettingError> {
    let mut fields = Fields::of(table)?.by_key();
    let items = match fields.take(KEY) {
        Some(field) => field.items()?,
        None => Vec::new(),
    };
    if let Some(problem) = fields.unknown().next() {
        return Err(problem.into());
    }
    if let Some(beyond) = items.get(MAX_NAMES) {
        let message = format!(
            "expected at most {MAX_NAMES} clients, found {}",
            items.len()
        );
        return Err(SettingError::new(message, beyond.at.clone()));
    }
    let names = items.iter().map(|item| {
        let name = item.text()?;
        match name.chars().count() {
            1..=MAX_NAME_CHARS => Ok(name.to_owned()),
            _ => {
                let message = format!(
                    "expected the name of a client, of 1 to {MAX_NAME_CHARS} characters, found {name:?}"
                );
                Err(SettingError::new(message, item.at.clone()))
            }
        }
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "toolward.toml";

    #[test]
    fn the_names_are_read_and_without_a_table_no_client_is_trusted() {
        let read = |text: &str| setting(text, Path::new(PATH));
        assert_eq!(read("[defaults]\n").unwrap(), Vec::<String>::new());
        assert_eq!(read("[clients]\n").unwrap(), Vec::<String>::new());
        assert_eq!(
            read("[clients]\nmay_approve = [\"claude-code\", \"Zed\"]\n").unwrap(),
            ["claude-code", "Zed"]
        );
        for (text, place) in [
            ("[clients]\nmay_approve = true\n", "toolward.toml:2:15:"),
            ("[clients]\nmay_approve = [\"\"]\n", "toolward.toml:2:16:"),
            ("[clients]\nmay_approve = [1]\n", "toolward.toml:2:16:"),
            ("[clients]\nmay_aprove = []\n", "toolward.toml:2:1:"),
            ("clients = 1\n", "toolward.toml:1:11:"),
        ] {
            let failure = read(text).unwrap_err();
            assert_eq!(failure.code, INVALID_CODE.code(), "{text}");
            assert!(failure.message.starts_with(place), "{}", failure.message);
        }
        refuse_setting("[defaults]\n", Path::new(PATH)).unwrap();
        refuse_setting("[clients]\n", Path::new(PATH)).unwrap_err();
    }

    #[test]
    fn a_name_is_added_to_the_table_that_the_file_has() {
        let cursor = ["cursor-vscode".to_owned()];
        let added = |text: &str| allowing(text, Path::new(PATH), &cursor).unwrap();
        for (before, after) in [
            ("", "[clients]\nmay_approve = [\"cursor-vscode\"]\n"),
            (
                "[ledger]\n",
                "[ledger]\n\n[clients]\nmay_approve = [\"cursor-vscode\"]\n",
            ),
            (
                "[clients]\n# mine\n[ledger]\n",
                "[clients]\nmay_approve = [\"cursor-vscode\"]\n# mine\n[ledger]\n",
            ),
            (
                "[clients]\nmay_approve = [\"Zed\"] # mine\n[ledger]\n",
                "[clients]\nmay_approve = [\"Zed\", \"cursor-vscode\"] # mine\n[ledger]\n",
            ),
        ] {
            assert_eq!(added(before).unwrap(), after);
            assert_eq!(added(after), None);
        }
        let failure = allowing("clients = {}\n", Path::new(PATH), &cursor).unwrap_err();
        assert_eq!(failure.code, Code::FileUnfit.code());
    }
}
