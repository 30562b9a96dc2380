//! `mcp`: the lines that make a client start or reach this server, and tokens.

mod token;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use crate::failure::{Code, Failure, Kind, Result};
use crate::output::Output;

/// The variable that a client's token is taken from, where a client can take one
/// from there.
const TOKEN_VARIABLE: &str = "TOOLWARD_TOKEN";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the block that makes a client use this server
    Config(Config),
    /// Make a token for `serve --tokens`
    Token(token::Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct Config {
    /// The client to print it for
    #[arg(value_enum)]
    client: Client,

    /// What the client calls the server
    #[arg(long, value_name = "NAME", default_value = "toolward")]
    name: String,

    /// Have the client connect to this address, which `serve --http` printed,
    /// rather than start a server of its own
    #[arg(long, value_name = "URL", conflicts_with = "flags")]
    url: Option<String>,

    /// Flags for `toolward serve`, such as -- --bundle PATH --trust-key PEM
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

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

pub(crate) fn run(command: &Command, output: &mut Output) -> Result {
    match command {
        Command::Config(config) => config.run(output),
        Command::Token(arguments) => token::run(arguments, output),
    }
}

/// How a client reaches the server.
enum Server {
    Started { program: String, flags: Vec<String> },
    Reached { url: String },
}

impl Config {
    fn run(&self, output: &mut Output) -> Result {
        let server = self.server()?;
        let (place, text) = self.client.block(&self.name, &server)?;
        output.note(format!("# {place}"));
        output.line(text)
    }

    fn server(&self) -> Result<Server> {
        match &self.url {
            Some(url) => Ok(Server::Reached { url: url.clone() }),
            None => started(self.flags.iter().map(|flag| absolute(flag))),
        }
    }
}

/// This very program, serving with these flags.
fn started(flags: impl IntoIterator<Item = String>) -> Result<Server> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("this program's own file can't be found: {error}");
        Failure::new(Kind::Failed, Code::ProgramUnknown, message)
    })?;
    Ok(Server::Started {
        program: program.display().to_string(),
        flags: std::iter::once("serve".to_owned()).chain(flags).collect(),
    })
}

/// A flag's path as one that holds wherever the client starts the server. What
/// names nothing here is left as it is.
fn absolute(flag: &str) -> String {
    let path = PathBuf::from(flag);
    match std::fs::canonicalize(&path) {
        Ok(whole) if !flag.starts_with('-') => whole.display().to_string(),
        _ => flag.to_owned(),
    }
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
        const OF_HOME: [&str; 6] = [
            ".config/Claude/claude_desktop_config.json",
            ".claude.json",
            ".cursor/mcp.json",
            ".codex/config.toml",
            ".gemini/settings.json",
            ".config/zed/settings.json",
        ];
        const OF_PROJECT: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];
        let of_home = OF_HOME.iter().filter_map(|file| Some(home?.join(file)));
        let of_project = OF_PROJECT.iter().map(|file| project.join(file));
        let mut files: Vec<PathBuf> = of_home.chain(of_project).collect();
        files.sort();
        files.dedup();
        files
    }

    /// Where the block goes, and the block.
    fn block(self, name: &str, server: &Server) -> Result<(&'static str, String)> {
        let place = match self {
            Self::ClaudeDesktop => "claude_desktop_config.json (Settings, Developer, Edit Config)",
            Self::ClaudeCode => ".mcp.json in the project's folder",
            Self::Cursor => "~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder",
            Self::VsCode => ".vscode/mcp.json in the project's folder",
            Self::Codex => "~/.codex/config.toml",
            Self::Gemini => "~/.gemini/settings.json",
            Self::Zed => "settings.json of Zed",
        };
        let text = match self {
            Self::Codex => codex(name, server)?,
            Self::VsCode => pretty("servers", name, &self.entry(server)),
            Self::Zed => pretty("context_servers", name, &self.entry(server)),
            _ => pretty("mcpServers", name, &self.entry(server)),
        };
        Ok((place, text))
    }

    fn entry(self, server: &Server) -> Value {
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
fn codex(name: &str, server: &Server) -> Result<String> {
    let mut entry = toml::Table::new();
    match server {
        Server::Started { program, flags } => {
            entry.insert("command".to_owned(), program.as_str().into());
            entry.insert("args".to_owned(), flags.clone().into());
        }
        Server::Reached { url } => {
            entry.insert("url".to_owned(), url.as_str().into());
            entry.insert("bearer_token_env_var".to_owned(), TOKEN_VARIABLE.into());
        }
    }
    let servers = toml::Table::from_iter([(name.to_owned(), toml::Value::Table(entry))]);
    let whole = toml::Table::from_iter([("mcp_servers".to_owned(), toml::Value::Table(servers))]);
    toml::to_string(&whole)
        .map(|text| text.trim_end().to_owned())
        .map_err(|error| Failure::new(Kind::Failed, Code::OutputUnwritable, error))
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
