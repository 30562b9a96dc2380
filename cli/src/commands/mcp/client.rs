//! The clients whose configuration is known: the place of their file, and the block or entry in it.

use clap::ValueEnum;
use toolward_operator::client_file::{ClientFileForm, ServerEntry};

use crate::environment;
use crate::helper::own_program;
use crate::prelude::*;

/// The variable from which a client takes its token, if the client can take a token from a
/// variable.
const TOKEN_VARIABLE: &str = "TOOLWARD_TOKEN";

/// The clients whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpClient {
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

/// Facts about a client.
pub(super) struct ClientFacts {
    /// The client's file for this user, relative to the home directory.
    pub(super) file: &'static str,
    /// The variable that moves the client's file, and the variable's value, relative to the home
    /// directory, with which the file stays in its usual place.
    moved_by: Option<(&'static str, &'static str)>,
    /// Where the block goes, as text for people.
    place: &'static str,
    form: ClientFileForm,
    /// The table of the file that has an entry for each server.
    table: &'static str,
    /// The name that the client sends. It depends on the client's version.
    sent_name: &'static str,
    /// How the client's file names the variable with a token; `None` if the file must contain the
    /// token itself.
    pub(super) token: Option<&'static str>,
}

impl ClientFacts {
    /// The entry with this name in the client's file.
    pub(super) fn entry<'a>(&self, name: &'a str, value: &'a Value) -> ServerEntry<'a> {
        ServerEntry {
            form: self.form,
            table: self.table,
            name,
            value,
        }
    }
}

/// How a client reaches the server.
pub(crate) enum Server {
    Started { program: String, flags: Vec<String> },
    Reached { url: String },
}

/// Returns this program as a server with these flags.
pub(crate) fn started(flags: impl IntoIterator<Item = String>) -> Result<Server> {
    let program = own_program(Code::ProgramUnknown)?;
    Ok(Server::Started {
        program: program.display().to_string(),
        flags: std::iter::once("serve".to_owned()).chain(flags).collect(),
    })
}

impl McpClient {
    /// Returns the files of all clients, in a home directory and in a project's directory.
    pub(crate) fn files(home: Option<&Path>, project: &Path) -> Vec<PathBuf> {
        const OF_PROJECT: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
        let all = Self::value_variants().iter();
        let of_home = all.filter_map(|client| Some(home?.join(client.facts().file)));
        let of_project = OF_PROJECT.iter().map(|file| project.join(file));
        let mut files: Vec<PathBuf> = of_home.chain(of_project).collect();
        files.sort();
        files.dedup();
        files
    }

    pub(super) fn facts(self) -> ClientFacts {
        let json = |file, place, sent_name| ClientFacts {
            file,
            moved_by: None,
            place,
            form: ClientFileForm::Json,
            table: "mcpServers",
            sent_name,
            token: None,
        };
        let config = Some(("XDG_CONFIG_HOME", ".config"));
        match self {
            Self::ClaudeDesktop => ClientFacts {
                moved_by: config,
                ..json(
                    ".config/Claude/claude_desktop_config.json",
                    "claude_desktop_config.json (Settings, Developer, Edit Config)",
                    "claude-ai",
                )
            },
            Self::ClaudeCode => ClientFacts {
                moved_by: Some(("CLAUDE_CONFIG_DIR", "")),
                token: Some("${TOOLWARD_TOKEN}"),
                ..json(
                    ".claude.json",
                    ".mcp.json in the project's folder",
                    "claude-code",
                )
            },
            Self::Cursor => ClientFacts {
                token: Some("${env:TOOLWARD_TOKEN}"),
                ..json(
                    ".cursor/mcp.json",
                    "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
                    "cursor-vscode",
                )
            },
            Self::VsCode => ClientFacts {
                moved_by: config,
                form: ClientFileForm::Jsonc,
                table: "servers",
                ..json(
                    ".config/Code/User/mcp.json",
                    ".vscode/mcp.json in the project's folder",
                    "Visual Studio Code",
                )
            },
            Self::Codex => ClientFacts {
                moved_by: Some(("CODEX_HOME", ".codex")),
                form: ClientFileForm::Toml,
                table: "mcp_servers",
                token: Some(TOKEN_VARIABLE),
                ..json(
                    ".codex/config.toml",
                    "~/.codex/config.toml",
                    "codex-mcp-client",
                )
            },
            Self::Gemini => ClientFacts {
                form: ClientFileForm::JsonWithComments,
                token: Some("$TOOLWARD_TOKEN"),
                ..json(
                    ".gemini/settings.json",
                    "~/.gemini/settings.json",
                    "gemini-cli-mcp-client",
                )
            },
            Self::Zed => ClientFacts {
                moved_by: config,
                form: ClientFileForm::Jsonc,
                table: "context_servers",
                ..json(".config/zed/settings.json", "settings.json of Zed", "Zed")
            },
        }
    }

    /// Returns the variable that moves this client's file, if it is set to another folder than the
    /// usual one.
    pub(super) fn moved(self, home: Option<&Path>) -> Option<&'static str> {
        let (variable, usual) = self.facts().moved_by?;
        let place = environment::path(variable)?;
        let moved = home.is_none_or(|home| place != home.join(usual));
        moved.then_some(variable)
    }

    /// Returns the names that the client sends to a server that its file calls `server`.
    pub(super) fn sent_names(self, server: &str) -> Vec<String> {
        let name = self.facts().sent_name;
        let with_server = (self == Self::Gemini).then(|| format!("{name}-{server}"));
        [name.to_owned()].into_iter().chain(with_server).collect()
    }

    /// Returns where the block goes, and the block.
    pub(crate) fn block(self, name: &str, server: &Server) -> Result<(&'static str, String)> {
        let (facts, value) = (self.facts(), self.entry(server));
        let text = facts.entry(name, &value).put("", |_| false)?;
        let text = text.unwrap_or_default().trim_end().to_owned();
        Ok((facts.place, text))
    }

    pub(super) fn entry(self, server: &Server) -> Value {
        let mut entry = Map::new();
        let mut add = |key: &str, value: Value| entry.insert(key.to_owned(), value);
        let is_typed = matches!(self, Self::VsCode | Self::ClaudeCode);
        match server {
            Server::Started { program, flags } => {
                if is_typed {
                    add("type", "stdio".into());
                }
                add("command", program.as_str().into());
                add("args", json!(flags));
            }
            Server::Reached { url } => {
                if is_typed {
                    add("type", "http".into());
                }
                let key = match self {
                    Self::Gemini => "httpUrl",
                    _ => "url",
                };
                add(key, url.as_str().into());
                let token = self.facts().token.unwrap_or("PUT THE TOKEN HERE");
                let bearer = format!("Bearer {token}");
                match self {
                    Self::Codex => add("bearer_token_env_var", token.into()),
                    _ => add("headers", json!({ "Authorization": bearer })),
                };
            }
        }
        Value::Object(entry)
    }
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
            (McpClient::ClaudeDesktop, "mcpServers"),
            (McpClient::ClaudeCode, "mcpServers"),
            (McpClient::Cursor, "mcpServers"),
            (McpClient::VsCode, "servers"),
            (McpClient::Gemini, "mcpServers"),
            (McpClient::Zed, "context_servers"),
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
        let (_, text) = McpClient::Codex.block("mine", &server()).unwrap();
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
        let (_, text) = McpClient::ClaudeCode.block("toolward", &reached).unwrap();
        let block: Value = serde_json::from_str(&text).unwrap();
        let entry = &block["mcpServers"]["toolward"];
        assert_eq!(entry["url"], "http://127.0.0.1:8000/mcp");
        assert_eq!(
            entry["headers"]["Authorization"],
            "Bearer ${TOOLWARD_TOKEN}"
        );
        assert_eq!(entry.get("command"), None);
        let (_, text) = McpClient::Codex.block("toolward", &reached).unwrap();
        assert!(
            text.contains("bearer_token_env_var = \"TOOLWARD_TOKEN\""),
            "{text}"
        );
    }
}
