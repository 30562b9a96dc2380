//! The line of `[[registry]]` that names a token server, as it is added to a configuration. What the operator wrote
//! about a token server is never changed.

use std::path::Path;

use toolward_fields::{Field, Fields, parse_toml};
use toolward_registry::{Reference, UnknownHost};

use super::{Registries, RegistrySettings, settings};
use crate::text_edit::TextEdit;

/// The lines to write for a registry: a table, or a line of the one that is there.
pub(crate) fn lines(table: Option<&RegistrySettings>, registry: &str, key: &str) -> String {
    match table {
        Some(_) => format!("{key}\n"),
        None => format!("[[registry]]\nhost = \"{registry}\"\n{key}\n"),
    }
}

/// `realm = "…"`.
pub(crate) fn realm(host: &UnknownHost) -> String {
    format!("realm = \"{}\"", host.origin)
}

/// The text of a configuration with the line, and what it then says of registries. `None` where the operator named
/// another token server, or where no line makes the difference.
pub(crate) fn added(
    edit: &TextEdit,
    path: &Path,
    folder: &Path,
    (reference, plain): (&Reference, bool),
    host: &UnknownHost,
) -> Option<(String, Registries)> {
    let mut wanted = settings(edit.text(), path, folder).ok()?;
    let line = realm(host);
    let after = match wanted.of(reference, plain).cloned() {
        Some(table) => {
            let number = wanted.0.iter().position(|one| *one == table)?;
            let own = wanted.0.get_mut(number)?;
            if own.realm.replace(host.origin.clone()).is_some() {
                return None;
            }
            edit.inserted(end_of_host(edit.text(), number)?, &line)?
        }
        None => {
            let host_name = reference.registry();
            let text = edit.appended(&lines(None, &host_name, &line));
            wanted.0.push(RegistrySettings {
                host: host_name,
                repository: None,
                ca_file: None,
                login: None,
                realm: Some(host.origin.clone()),
                redirects_to: Vec::new(),
                plain_http: false,
            });
            text
        }
    };
    // The rest of the file means what it meant: the line stands in the table, and nowhere else.
    let found = settings(&after, path, folder).ok()?;
    (found == wanted).then_some((after, found))
}

/// Where the value of `host` ends, in the table of this number.
fn end_of_host(text: &str, number: usize) -> Option<usize> {
    let document = parse_toml(text).ok()?;
    let tables = Field::new("[[registry]]", document.get("registry")?);
    let table = tables.items().ok()?.into_iter().nth(number)?;
    let mut fields = Fields::of(&table).ok()?.by_key();
    let host = fields.required("host").ok()?;
    host.at.end.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use toolward_registry::{HostRole, Source};

    use super::*;

    fn host() -> UnknownHost {
        let Ok(Source::Web(url)) = Source::parse("https://auth.example/token") else {
            panic!("not an address");
        };
        UnknownHost::of(HostRole::TokenServer, &url).unwrap()
    }

    /// What becomes of a configuration for `oci://r.example/team/a`.
    fn changed(text: &str) -> Option<String> {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("toolward.toml");
        std::fs::write(&path, text).unwrap();
        let edit = TextEdit::of(&path).unwrap();
        let reference = "oci://r.example/team/a:1".parse().unwrap();
        let (after, found) = added(&edit, &path, home.path(), (&reference, false), &host())?;
        let table = found.of(&reference, false).unwrap();
        assert_eq!(table.realm.as_deref(), Some("https://auth.example"));
        Some(after)
    }

    #[test]
    fn the_line_stands_in_the_table_that_counts_for_the_repository() {
        let line = "realm = \"https://auth.example\"\n";
        let table = "[[registry]]\nhost = \"r.example\"\n";
        assert_eq!(changed("").unwrap(), format!("{table}{line}"));
        let other = "[[registry]]\nhost = \"r.example:444\"";
        assert_eq!(
            changed(other).unwrap(),
            format!("{other}\n\n{table}{line}"),
            "a last line without an end"
        );
        let own = "[[registry]]\nhost = \"r.example:443\" # mine\nrepository = \"team/a\"\n";
        let text = format!("{table}{own}[trust]\nmax_age_days = 9\n");
        let after = own.replace("# mine\n", &format!("# mine\n{line}"));
        assert_eq!(changed(&text).unwrap(), text.replace(own, &after));
        let windows = format!("{table}[defaults]\n").replace('\n', "\r\n");
        let both = format!("{table}{line}[defaults]\n").replace('\n', "\r\n");
        assert_eq!(changed(&windows).unwrap(), both);
    }

    #[test]
    fn what_the_operator_wrote_of_a_token_server_is_not_changed() {
        for text in [
            "[[registry]]\nhost = \"r.example\"\nrealm = \"https://login.example\"\n",
            "[[registry]]\nhost = \"r.example\"\n[[registry]]\nhost = \"r.example\"\n\
             repository = \"team/a\"\nrealm = \"https://r.example\"\n",
            // A line is of no use there.
            "registry = [{ host = \"r.example\" }]\n",
            "registry = [{ host = \"x.example\" }]\n",
            "[[registry]]\nhost = \"r.example\"\nunknown = 1\n",
        ] {
            assert_eq!(changed(text), None, "{text}");
        }
    }
}
