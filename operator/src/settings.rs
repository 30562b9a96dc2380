//! Tables of `toolward.toml` besides policy and trust. Reads a table, and reports an error with its
//! position. Also reads the two small tables `[confine]` and `[clients]`.

use std::path::{Path, PathBuf};

use toolward_contract::diagnostic::{Diagnostic, Position};
use toolward_host::confine::SystemCalls;
use toolward_policy::{OTHER_TABLES, table_key};
use toolward_signing::trust;
use toolward_support::fields::{
    Content, Field, FieldProblem, Fields, Node, Span, did_you_mean, parse_toml,
};

use crate::lasting_changes::{appended, inserted, replaced};
use crate::{Code, Error, Result};

/// A table that may be in the configuration, but not in a file of `--policy-file`.
pub(crate) struct SettingsTable {
    name: &'static str,
    invalid: Code,
}

pub(crate) const LEDGER: SettingsTable = table("[ledger]", Code::LedgerSettingInvalid);
pub(crate) const REGISTRY: SettingsTable = table("[[registry]]", Code::RegistrySettingInvalid);
const CONFINE: SettingsTable = table("[confine]", Code::ConfineSettingInvalid);
const CLIENTS: SettingsTable = table("[clients]", Code::ClientSettingInvalid);

pub(crate) const fn table(name: &'static str, invalid: Code) -> SettingsTable {
    SettingsTable { name, invalid }
}

const SYSTEM_CALLS: &[(&str, SystemCalls)] = &[
    ("allow-list", SystemCalls::AllowList),
    ("deny-list", SystemCalls::DenyList),
];

/// The key of `[clients]`.
const MAY_APPROVE: &str = "may_approve";
/// Longest name of a client, in characters.
const MAX_NAME_CHARS: usize = 200;
/// Most names.
const MAX_NAMES: usize = 100;

/// The problem with a setting, its position, and the next step.
pub(crate) struct SettingError {
    message: String,
    at: Span,
    hint: Option<String>,
}

impl SettingError {
    pub(crate) fn new(message: impl Into<String>, at: &Span) -> Self {
        Self {
            message: message.into(),
            at: at.clone(),
            hint: None,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { hint, ..self }
    }
}

impl From<FieldProblem<'_, Span>> for SettingError {
    fn from(problem: FieldProblem<'_, Span>) -> Self {
        match problem {
            FieldProblem::Missing { name, within, at } => {
                Self::new(format!("expected `{name}` in {within}, found none"), &at)
            }
            FieldProblem::Unknown {
                key,
                within,
                at,
                known,
                ..
            } => Self::new(format!("expected a key of {within}, found {key:?}"), &at)
                .hint(did_you_mean(key, known.iter().map(String::as_str), "keys")),
            FieldProblem::Type {
                name,
                expected,
                found,
            } => {
                let (expected, kind) = (expected.in_toml(), found.kind().in_toml());
                let message = format!("expected `{name}` to be {expected}, found {kind}");
                Self::new(message, &found.at)
            }
            FieldProblem::Integer { name, range, found } => {
                let number = match &found.content {
                    Content::Number(number) => number.to_string(),
                    _ => found.kind().in_toml().to_owned(),
                };
                let (least, most) = (range.start(), range.end());
                let message = format!(
                    "expected `{name}` to be a whole number from {least} to {most}, found {number}"
                );
                Self::new(message, &found.at)
            }
        }
    }
}

impl SettingsTable {
    fn document(&self, text: &str, path: &Path) -> Result<Node<Span>> {
        parse_toml(text).map_err(|error| {
            let at = error.span().unwrap_or_default();
            self.error(text, path, SettingError::new(error.message(), &at))
        })
    }

    fn find<'d>(&self, document: &'d Node<Span>) -> Option<&'d Node<Span>> {
        document.get(table_key(self.name))
    }

    /// Reads the table in the text of the file at `path`. Returns the default if the text has no
    /// such table.
    pub(crate) fn read<T: Default>(
        &self,
        text: &str,
        path: &Path,
        read: impl FnOnce(&Field<'_, Span>) -> Result<T, SettingError>,
    ) -> Result<T> {
        let document = self.document(text, path)?;
        let table = self
            .find(&document)
            .map(|table| Field::new(self.name, table));
        let read = table.map(|table| read(&table)).transpose();
        let read = read.map_err(|wrong| self.error(text, path, wrong))?;
        Ok(read.unwrap_or_default())
    }

    fn error(&self, text: &str, path: &Path, wrong: SettingError) -> Error {
        let at = Position::of_offset(text, wrong.at.start);
        let problem = wrong.message.lines().collect::<Vec<_>>().join(", ");
        let message = format!("{}:{at}: {problem}", path.display());
        let failure = Error::usage(self.invalid, message).maybe_hint(wrong.hint.clone());
        let file = path.display().to_string();
        let found = Diagnostic::new(self.invalid.row(), &file, at, problem);
        failure.with_diagnostics(vec![Diagnostic {
            hint: wrong.hint,
            ..found
        }])
    }
}

/// Refuses settings such as `[confine]` in a file of `--policy-file`, since they would have no
/// effect there.
pub(crate) fn refuse_in_policy(text: &str, path: &Path) -> Result<()> {
    let names = OTHER_TABLES.iter().map(|(name, _)| *name);
    for name in names.filter(|name| !trust::TABLES.contains(&table_key(name))) {
        let mut known = [CONFINE, CLIENTS, LEDGER, REGISTRY].into_iter();
        let table = known.find(|table| table.name == name);
        let table = table.unwrap_or(self::table(name, Code::SettingInvalid));
        let document = table.document(text, path)?;
        if let Some(found) = table.find(&document) {
            let message = format!("expected no `{name}` in a file of --policy-file");
            let hint = format!("`{name}` belongs in toolward.toml, or in the file of --config");
            let wrong = SettingError::new(message, &found.at).hint(hint);
            return Err(table.error(text, path, wrong));
        }
    }
    Ok(())
}

/// Returns the error for a field whose value is not as expected.
pub(crate) fn expected(field: &Field<'_, Span>, expected: &str) -> SettingError {
    let message = format!("expected `{}` to be {expected}", field.name);
    SettingError::new(message, &field.at)
}

/// Returns a path. A relative path is resolved against `folder`.
pub(crate) fn path(field: &Field<'_, Span>, folder: &Path) -> Result<PathBuf, SettingError> {
    match field.text()? {
        "" => Err(expected(field, "a path, found \"\"")),
        path => Ok(folder.join(path)),
    }
}

/// Returns the value for one of these words.
pub(crate) fn word<T: Copy>(
    field: &Field<'_, Span>,
    known: &[(&'static str, T)],
) -> Result<T, SettingError> {
    let found = field.text()?;
    if let Some((_, value)) = known.iter().find(|(word, _)| *word == found) {
        return Ok(*value);
    }
    let other = format!("another word, found {found:?}");
    let words = known.iter().map(|(word, _)| *word);
    Err(expected(field, &other).hint(did_you_mean(found, words, "words")))
}

/// Refuses the first key that the table must not have.
pub(crate) fn no_others(fields: Fields<'_, Span>) -> Result<(), SettingError> {
    match fields.unknown().next() {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// `[confine]`: the list of system calls for processes that run guests.
pub(crate) fn system_calls(text: &str, path: &Path) -> Result<SystemCalls> {
    CONFINE.read(text, path, |table| {
        let mut fields = Fields::of(table)?.by_key();
        let calls = fields.take("system_calls");
        let calls = calls.map(|field| word(&field, SYSTEM_CALLS)).transpose()?;
        no_others(fields)?;
        Ok(calls.unwrap_or_default())
    })
}

/// `[clients]`: the names of the MCP clients on standard input and output that may ask the person
/// who uses them for approval. A client chooses its name, so the name proves nothing: it only
/// distinguishes the programs that the operator starts. Clients over HTTP have tokens instead.
pub(crate) fn approving_clients(text: &str, path: &Path) -> Result<Vec<String>> {
    CLIENTS.read(text, path, client_names)
}

fn client_names(table: &Field<'_, Span>) -> Result<Vec<String>, SettingError> {
    let mut fields = Fields::of(table)?.by_key();
    let items = fields.take(MAY_APPROVE).map(|field| field.items());
    let items = items.transpose()?.unwrap_or_default();
    no_others(fields)?;
    if let Some(beyond) = items.get(MAX_NAMES) {
        let count = items.len();
        let message = format!("expected at most {MAX_NAMES} clients, found {count}");
        return Err(SettingError::new(message, &beyond.at));
    }
    let names = items.iter().map(|item| {
        let name = item.text()?;
        match name.chars().count() {
            1..=MAX_NAME_CHARS => Ok(name.to_owned()),
            _ => {
                let message = format!(
                    "expected the name of a client, of 1 to {MAX_NAME_CHARS} characters, found {name:?}"
                );
                Err(SettingError::new(message, &item.at))
            }
        }
    });
    names.collect()
}

/// Returns the text of a configuration in which `[clients]` allows these clients as well; `None` if
/// it already does.
///
/// # Errors
/// `client-setting-invalid` if the table is invalid; `file-unfit` if its form does not allow adding
/// names.
pub fn allow_clients(text: &str, path: &Path, added: &[String]) -> Result<Option<String>> {
    let known = approving_clients(text, path)?;
    let missing: Vec<&String> = added.iter().filter(|name| !known.contains(name)).collect();
    if missing.is_empty() {
        return Ok(None);
    }
    let wanted: Vec<String> = known.iter().chain(missing).cloned().collect();
    let list = toml::Value::from(wanted.clone());
    let line = format!("{MAY_APPROVE} = {list}");
    let document = CLIENTS.document(text, path)?;
    let table = CLIENTS.find(&document);
    let after = match table.map(|table| (table.get(MAY_APPROVE), table.at.start)) {
        Some((Some(value), _)) => replaced(text, &value.at, &list.to_string()),
        Some((None, header)) => inserted(text, header, &line),
        None => Some(appended(text, &format!("[clients]\n{line}"))),
    };
    let has_them =
        |after: &String| approving_clients(after, path).is_ok_and(|names| names == wanted);
    after.filter(has_them).map(Some).ok_or_else(|| {
        let message = format!(
            "{}: `[clients]` can't be changed as it is written",
            path.display()
        );
        Error::failed(Code::FileUnfit, message)
            .hint(format!("write into `[clients]` yourself: {line}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "toolward.toml";

    #[track_caller]
    fn is_wrong_at<T: std::fmt::Debug>(read: Result<T, Error>, code: Code, place: &str) {
        let failure = read.unwrap_err();
        assert_eq!(failure.code, code.code(), "{}", failure.message);
        assert!(failure.message.starts_with(place), "{}", failure.message);
    }

    #[test]
    fn the_list_of_system_calls_is_read_and_what_means_nothing_is_an_error_with_its_place() {
        let read = |text: &str| system_calls(text, Path::new(PATH));
        for (text, expected) in [
            ("[defaults]\n", SystemCalls::AllowList),
            ("[confine]\n", SystemCalls::AllowList),
            (
                "[confine]\nsystem_calls = \"allow-list\"\n",
                SystemCalls::AllowList,
            ),
            (
                "[confine]\nsystem_calls = \"deny-list\"\n",
                SystemCalls::DenyList,
            ),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for (text, place) in [
            (
                "[confine]\nsystem_calls = \"none\"\n",
                "toolward.toml:2:16:",
            ),
            ("[confine]\nsystem_calls = false\n", "toolward.toml:2:16:"),
            (
                "\n[confine]\nsystem_cals = \"deny-list\"\n",
                "toolward.toml:3:1:",
            ),
            ("confine = 1\n", "toolward.toml:1:11:"),
            ("[[confine]]\n", "toolward.toml:1:"),
        ] {
            is_wrong_at(read(text), Code::ConfineSettingInvalid, place);
        }
    }

    #[test]
    fn the_names_are_read_and_without_a_table_no_client_is_trusted() {
        let read = |text: &str| approving_clients(text, Path::new(PATH));
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
            is_wrong_at(read(text), Code::ClientSettingInvalid, place);
        }
    }

    #[test]
    fn a_policy_file_has_none_of_these_tables() {
        let path = Path::new("more.toml");
        refuse_in_policy("[defaults]\n", path).unwrap();
        for (text, code) in [
            ("[confine]\n", Code::ConfineSettingInvalid),
            ("[clients]\n", Code::ClientSettingInvalid),
            ("[ledger]\n", Code::LedgerSettingInvalid),
            ("[[registry]]\n", Code::RegistrySettingInvalid),
        ] {
            is_wrong_at(refuse_in_policy(text, path), code, "more.toml:1:");
        }
    }

    #[test]
    fn a_name_is_added_to_the_table_that_the_file_has() {
        let cursor = ["cursor-vscode".to_owned()];
        let added = |text: &str| allow_clients(text, Path::new(PATH), &cursor).unwrap();
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
        let failure = allow_clients("clients = {}\n", Path::new(PATH), &cursor).unwrap_err();
        assert_eq!(failure.code, Code::FileUnfit.code());
    }
}
