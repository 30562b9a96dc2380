//! Asks about hosts that a registry names: where downloads come from, and token servers.

use toolward_bundle::text::visible_line;
use toolward_operator::lasting_changes::LastingChanges;
use toolward_operator::network::{AskHost, DownloadHost, RealmChange};
use toolward_operator::registry::UnknownHost;

use crate::approve;
use crate::change;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Code, Failure, Kind, Result};

/// The person at the terminal.
#[derive(Debug)]
pub(super) struct TerminalHosts {
    environment: Environment,
}

impl TerminalHosts {
    pub(super) fn new(environment: &Environment) -> Self {
        Self {
            environment: environment.clone(),
        }
    }
}

impl AskHost for TerminalHosts {
    fn downloads(&self, asked: &DownloadHost) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let (repository, host) = (&asked.repository, &asked.host);
        let (registry, name) = (shown(repository.registry()), repository.repository());
        let text = format!(
            "The registry {registry} redirects downloads of {} to\n  + {}\n\n{}No credentials go there, and what comes \
             is verified as ever. A yes is kept for this repository.",
            shown(name),
            shown(&host.origin),
            encoded(host)
        );
        match approve::confirmed(&text, "Download from there?") {
            Ok(true) => Ok(true),
            _ => Err(Failure::new(
                Kind::Denied,
                Code::ChangeUnconfirmed,
                format!("downloads of {repository} from {host} were not confirmed"),
            )
            .hint("ask whoever runs the registry where its downloads come from")),
        }
    }

    fn realm(&self, asked: RealmChange) -> Result<bool> {
        if !has_terminal() {
            return Ok(false);
        }
        let why = format!(
            "The registry {} wants tokens from\n  + {}\n\n{}The name and the password for this registry, if it has \
             any, are sent there.\n\n",
            shown(&asked.registry),
            shown(&asked.host.origin),
            encoded(&asked.host)
        );
        let changes = LastingChanges::of(&self.environment)?;
        change::made(&why, asked.edit, &asked.after, asked.change, &changes)?;
        Ok(true)
    }
}

fn shown(text: impl AsRef<str>) -> String {
    visible_line(text.as_ref(), 400)
}

/// A remark about a name that people read in other letters.
fn encoded(host: &UnknownHost) -> &'static str {
    match host.is_encoded() {
        true => {
            "This name stands for one in other letters, which may look like a name that you know.\n\n"
        }
        false => "",
    }
}
