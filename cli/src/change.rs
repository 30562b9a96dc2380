//! A lasting change of a user's file: shown, confirmed by keys typed after that, and made. No flag and no variable
//! confirms it.

use serde_json::json;
use toolward_bundle::text::{visible, visible_line};
use toolward_operator::lasting_changes::{LastingChange, LastingChanges, TextEdit};

use crate::approve;
use crate::environment::has_terminal;
use crate::failure::{Code, Failure, Kind, Result};
use crate::output::Output;

/// Longest difference that is shown, in characters. What is longer can't be confirmed.
const MAX_DIFFERENCE_CHARS: usize = 256 * 1024;

/// Shows what differs, asks, and writes the file.
pub(crate) fn make(
    edit: TextEdit,
    after: &str,
    change: LastingChange,
    changes: &LastingChanges,
    output: &mut Output,
) -> Result {
    let path = edit.path().to_owned();
    let backup = edit.backup();
    made("", edit, after, change, changes)?;
    let value = json!({
        "ok": true, "state": "written", "file": path.display().to_string(),
        "backup": backup.map(|backup| backup.display().to_string()),
    });
    let shown = visible_line(&path.display().to_string(), 1000);
    output.result(&value, format_args!("wrote {shown}"))
}

/// The same without a result. `why` stands above what differs.
pub(crate) fn made(
    why: &str,
    edit: TextEdit,
    after: &str,
    change: LastingChange,
    changes: &LastingChanges,
) -> Result {
    let shown = visible_line(&edit.path().display().to_string(), 1000);
    let unconfirmed =
        |message: String| Failure::new(Kind::Denied, Code::ChangeUnconfirmed, message);
    if !has_terminal() {
        let message = format!("{shown}: no one can be asked about the change");
        return Err(unconfirmed(message)
            .hint("give the command on a terminal, where it shows the difference and asks"));
    }
    let difference = edit.difference(after);
    if difference.chars().count() > MAX_DIFFERENCE_CHARS {
        return Err(
            unconfirmed(format!("{shown}: the difference is too long to be shown"))
                .hint("change the file with an editor"),
        );
    }
    let what = match edit.has_backup() {
        true => "What it held before the first change stays in",
        false => "What it holds now is kept in",
    };
    let kept = match edit.backup() {
        Some(backup) => format!(
            "{what} {}",
            visible_line(&backup.display().to_string(), 1000)
        ),
        None => "The file is new".to_owned(),
    };
    let difference = visible(&difference, MAX_DIFFERENCE_CHARS);
    let text = format!("{why}{shown}\n\n{}\n\n{kept}.", difference.trim_end());
    match approve::confirmed(&text, "Write this?") {
        Ok(true) => {}
        _ => {
            return Err(
                unconfirmed(format!("{shown}: the change was not confirmed"))
                    .hint("the file is unchanged; a `y` after the question confirms"),
            );
        }
    }
    edit.write(after, change, changes)
}
