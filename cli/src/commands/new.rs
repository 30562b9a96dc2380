//! `new`: a bundle to start from.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::json;
use toolward_author::scaffold::{self, Options, Sdk};

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where; the directory must not exist
    directory: PathBuf,

    /// The id of the bundle and its tool, such as text.greet [default: the
    /// directory's name]
    #[arg(long)]
    id: Option<String>,

    /// Who will sign it
    #[arg(long, default_value = "local")]
    publisher: String,

    /// Take the guest SDK (the crate toolward-guest) from this directory
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,

    /// Take this published version of the guest SDK
    #[arg(long, value_name = "VERSION", conflicts_with = "sdk", default_value = env!("CARGO_PKG_VERSION"))]
    sdk_version: String,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let id = match &arguments.id {
        Some(id) => id.clone(),
        None => arguments
            .directory
            .file_name()
            .map(|name| name.to_string_lossy().to_ascii_lowercase())
            .unwrap_or_default(),
    };
    let sdk = match &arguments.sdk {
        None => Sdk::Version(arguments.sdk_version.clone()),
        Some(path) => {
            if !path.join("Cargo.toml").is_file() {
                return Err(Failure::unreadable(path, "there is no Cargo.toml in it")
                    .hint("--sdk names the directory of the crate toolward-guest"));
            }
            // The crate that names it lies elsewhere.
            Sdk::Path(
                path.canonicalize()
                    .map_err(|error| Failure::unreadable(path, error))?,
            )
        }
    };
    let options = Options {
        id,
        publisher: arguments.publisher.clone(),
        created: super::pack::source_date_epoch(environment)?.unwrap_or_else(now),
        sdk,
    };
    let files = scaffold::create(&arguments.directory, &options).map_err(failure::scaffolded)?;
    if output.json() {
        output.value(&json!({ "ok": true, "directory": arguments.directory, "id": options.id, "files": files }))?;
        return Ok(Exit::Fine);
    }
    for file in &files {
        output.line(arguments.directory.join(file).display())?;
    }
    let directory = arguments.directory.display();
    if arguments.sdk.is_none() {
        output.note(
            "The driver's crate asks for a released toolward-guest. From a checkout of Toolward, \
             name its folder: toolward new --sdk PATH/guest-sdk …",
        );
    }
    output.note(format!(
        "\nNext:\n  toolward check {directory}\n  toolward build {directory}\n  toolward test --dev {directory}"
    ));
    Ok(Exit::Fine)
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or_default()
}
