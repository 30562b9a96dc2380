//! The clients whose configuration is known: where it is, and the block or entry in it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};
use toolward_operator::client_file::ClientFileForm;

use crate::environment;
use crate::failure::{Code, Failure, Kind, Result};

/// The variable that a client's token is taken from, where a client can take one
/// from there.
const TOKEN_VARIABLE: &str = "TOOLWARD_TOKEN";

/// The clients whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code
    ClaudeCode,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    VsCode,
    /// Codex CLI
    Codex,
    /// Gemini CLI
    Gemini,
    /// Zed
    Zed,
}

/// How a client reaches the server.
pub(super) enum Server {
    Started { program: String, flags: Vec<String> },
    Reached { url: String },
}

/// This very program, serving with these flags.
pub(super) fn started(flags: impl IntoIterator<Item = String>) -> Result<Server> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("this program's own file can't be found: {error}");
        Failure::new(Kind::Failed, Code::ProgramUnknown, message)
    })?;
    Ok(Server::Started {
        program: program.display().to_string(),
        flags: std::iter::once("serve".to_owned()).chain(flags).collect(),
    })
}

impl Client {
    /// Where the block goes that makes the client start this program, and the block.
    pub(crate) fn starting(
        self,
        name: &str,
        flags: impl IntoIterator<Item = String>,
    ) -> Result<(&'static str, String)> {
        self.block(name, &started(flags)?)
    }

    /// The files of all clients, in a home directory and in a project's.
    pub(crate) fn files(home: Option<&Path>, project: &Path) -> Vec<PathBuf> {
        const OF_PROJECT: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
        let all = Self::value_variants().iter();
        let of_home = all.filter_map(|client| Some(home?.join(client.file())));
        let of_project = OF_PROJECT.iter().map(|file| project.join(file));
        let mut files: Vec<PathBuf> = of_home.chain(of_project).collect();
        files.sort();
        files.dedup();
        files
    }

    /// The user's own file, in the home directory.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::ClaudeDesktop => ".config/Claude/claude_desktop_config.json",
            Self::ClaudeCode => ".claude.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".config/Code/User/mcp.json",
            Self::Codex => ".codex/config.toml",
            Self::Gemini => ".gemini/settings.json",
            Self::Zed => ".config/zed/settings.json",
        }
    }

    /// The variable that has this client look for its file elsewhere, if it is set to that.
    pub(super) fn moved(self, home: Option<&Path>) -> Option<&'static str> {
        let (variable, usual) = match self {
            Self::ClaudeDesktop | Self::VsCode | Self::Zed => ("XDG_CONFIG_HOME", ".config"),
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ""),
            Self::Codex => ("CODEX_HOME", ".codex"),
            Self::Cursor | Self::Gemini => return None,
        };
        let place = environment::path(variable)?;
        let moved = home.is_none_or(|home| place != home.join(usual));
        moved.then_some(variable)
    }

    pub(super) fn form(self) -> ClientFileForm {
        match self {
            Self::ClaudeDesktop | Self::ClaudeCode | Self::Cursor => ClientFileForm::Json,
            Self::Gemini => ClientFileForm::JsonWithComments,
            Self::VsCode | Self::Zed => ClientFileForm::Jsonc,
            Self::Codex => ClientFileForm::Toml,
        }
    }

    /// The names that it sends to a server that its file calls `server`. Versions of a client differ.
    pub(super) fn sent_names(self, server: &str) -> Vec<String> {
        let plain = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match self {
            Self::ClaudeDesktop => plain(&["claude-ai"]),
            Self::ClaudeCode => plain(&["claude-code"]),
            Self::Cursor => plain(&["cursor-vscode"]),
            Self::VsCode => plain(&["Visual Studio Code"]),
            Self::Codex => plain(&["codex-mcp-client"]),
            Self::Gemini => {
                let name = "gemini-cli-mcp-client";
                vec![name.to_owned(), format!("{name}-{server}")]
            }
            Self::Zed => plain(&["Zed"]),
        }
    }

    /// The table of the file that has an entry for each server.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    /// Whether a file of it can name the variable that has a token, rather than hold the token.
    pub(super) fn refers_to_tokens(self) -> bool {
        matches!(
            self,
            Self::ClaudeCode | Self::Cursor | Self::Codex | Self::Gemini
        )
    }

    /// Where the block goes, and the block.
    pub(super) fn block(self, name: &str, server: &Server) -> Result<(&'static str, String)> {
        let place = match self {
            Self::ClaudeDesktop => "claude_desktop_config.json (Settings, Developer, Edit Config)",
            Self::ClaudeCode => ".mcp.json in the project's folder",
            Self::Cursor => "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
            Self::VsCode => ".vscode/mcp.json in the project's folder",
            Self::Codex => "~/.codex/config.toml",
            Self::Gemini => "~/.gemini/settings.json",
            Self::Zed => "settings.json of Zed",
        };
        let entry = self.entry(server);
        let text = match self {
            Self::Codex => codex(self.table(), name, &entry)?,
            _ => pretty(self.table(), name, &entry),
        };
        Ok((place, text))
    }

    pub(super) fn entry(self, server: &Server) -> Value {
        let mut entry = Map::new();
        let mut add = |key: &str, value: Value| entry.insert(key.to_owned(), value);
        match server {
            Server::Started { program, flags } => {
                if self == Self::VsCode || self == Self::ClaudeCode {
                    add("type", "stdio".into());
                }
                add("command", program.as_str().into());
                add("args", json!(flags));
            }
            Server::Reached { url } if self == Self::Codex => {
                add("url", url.as_str().into());
                add("bearer_token_env_var", TOKEN_VARIABLE.into());
            }
            Server::Reached { url } => {
                match self {
                    Self::VsCode | Self::ClaudeCode => {
                        add("type", "http".into());
                        add("url", url.as_str().into());
                    }
                    Self::Gemini => {
                        add("httpUrl", url.as_str().into());
                    }
                    _ => {
                        add("url", url.as_str().into());
                    }
                }
                let token = match self {
                    Self::ClaudeCode => format!("${{{TOKEN_VARIABLE}}}"),
                    Self::Cursor => format!("${{env:{TOKEN_VARIABLE}}}"),
                    Self::Gemini => format!("${TOKEN_VARIABLE}"),
                    _ => "PUT THE TOKEN HERE".to_owned(),
                };
                add(
                    "headers",
                    json!({ "Authorization": format!("Bearer {token}") }),
                );
            }
        }
        Value::Object(entry)
    }
}

fn pretty(table: &str, name: &str, entry: &Value) -> String {
    let block = json!({ table: { name: entry } });
    serde_json::to_string_pretty(&block).unwrap_or_default()
}

/// TOML, since that client reads nothing else.
fn codex(table: &str, name: &str, entry: &Value) -> Result<String> {
    let unwritable = |error| Failure::new(Kind::Failed, Code::OutputUnwritable, error);
    let entry = toml::Value::try_from(entry).map_err(unwritable)?;
    let servers = toml::Table::from_iter([(name.to_owned(), entry)]);
    let whole = toml::Table::from_iter([(table.to_owned(), toml::Value::Table(servers))]);
    toml::to_string(&whole)
        .map(|text| text.trim_end().to_owned())
        .map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::Started {
            program: "/bin/toolward".to_owned(),
            flags: vec![
                "serve".to_owned(),
                "--defer-above".to_owned(),
                "9".to_owned(),
            ],
        }
    }

    #[test]
    fn each_block_is_in_the_form_and_under_the_key_that_its_client_reads() {
        for (client, table) in [
            (Client::ClaudeDesktop, "mcpServers"),
            (Client::ClaudeCode, "mcpServers"),
            (Client::Cursor, "mcpServers"),
            (Client::VsCode, "servers"),
            (Client::Gemini, "mcpServers"),
            (Client::Zed, "context_servers"),
        ] {
            let (_, text) = client.block("mine", &server()).unwrap();
            let block: Value = serde_json::from_str(&text).unwrap();
            let entry = &block[table]["mine"];
            assert_eq!(entry["command"], "/bin/toolward", "{client:?}");
            assert_eq!(
                entry["args"],
                json!(["serve", "--defer-above", "9"]),
                "{client:?}"
            );
        }
        let (_, text) = Client::Codex.block("mine", &server()).unwrap();
        let block: toml::Table = text.parse().unwrap();
        assert_eq!(
            block["mcp_servers"]["mine"]["args"][0].as_str(),
            Some("serve")
        );
    }

    #[test]
    fn a_server_that_runs_already_is_reached_with_a_token() {
        let reached = Server::Reached {
            url: "http://127.0.0.1:8000/mcp".to_owned(),
        };
        let (_, text) = Client::ClaudeCode.block("toolward", &reached).unwrap();
        let block: Value = serde_json::from_str(&text).unwrap();
        let entry = &block["mcpServers"]["toolward"];
        assert_eq!(entry["url"], "http://127.0.0.1:8000/mcp");
        assert_eq!(
            entry["headers"]["Authorization"],
            "Bearer ${TOOLWARD_TOKEN}"
        );
        assert_eq!(entry.get("command"), None);
        let (_, text) = Client::Codex.block("toolward", &reached).unwrap();
        assert!(
            text.contains("bearer_token_env_var = \"TOOLWARD_TOKEN\""),
            "{text}"
        );
    }
}
