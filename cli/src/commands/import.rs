//! `import`: makes bundles from components and tool definitions of other hosts.

mod definitions;

use std::process::{Command as Process, Stdio};

use toolward_adapters::import::{self, ImportError, ImportOptions, Imported, NewBundle};
use toolward_bundle::component::Surface;

use self::definitions::{AmlFlags, Runloop};
use super::inspect::read_component;
use super::new::places;
use crate::helper::own_program;
use crate::prelude::*;

/// The most functions that are shown from which no tool was made.
const MAX_SHOWN: usize = 20;

/// How many remarks about tools are shown.
const MAX_REMARKS: usize = 100;

/// Longest draft of a policy that is shown, in characters. A part of a draft would be useless.
const MAX_POLICY: usize = 1024 * 1024;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A component with plain functions, such as Wassette runs; each function becomes a tool
    Component {
        /// The component
        file: PathBuf,
        #[command(flatten)]
        declared: DeclaredFlags,
    },
    /// A tool of Amplifier: its component, or a directory with the component
    ///
    /// The component is asked for its description in a sandbox that reaches nothing.
    Amplifier {
        /// The component, or a directory with one file that ends in .wasm
        path: PathBuf,
        #[command(flatten)]
        declared: DeclaredFlags,
    },
    /// Tool definitions of AML, NAME.tool.md: each becomes a contract, and for a REST API also a
    /// driver
    Aml(AmlFlags),
    /// A tools.json of version 1, as Runloop's agents have it next to policy.caps
    Runloop(Runloop),
}

/// The ids of the tools, and what the tools may ask for: only what these flags name.
#[derive(Debug, Args)]
pub(crate) struct DeclaredFlags {
    /// The id of the bundle and its tool. If there are several tools, their ids start with it
    #[arg(long)]
    id: String,

    /// The publisher who will sign the bundle
    #[arg(long, default_value = "local")]
    publisher: String,

    /// A directory that the tools see, such as /data; with :rw at the end, they can also write
    /// there
    #[arg(long, value_name = "PATH[:rw]")]
    workspace: Vec<String>,

    /// A host that the tools send requests to
    #[arg(long, value_name = "HOST")]
    network: Vec<String>,

    /// A secret that is put into the tools' requests
    #[arg(long, value_name = "SLUG")]
    secret: Vec<String>,

    /// The tools change nothing: no person is asked before a call, and a call may be repeated
    #[arg(long)]
    read_only: bool,

    /// The directory to make; it must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result {
        match self {
            Self::Component { file, declared } => {
                let options = declared.options(file, context)?;
                let imported = import::component(&read_component(file)?, &options);
                declared.write(file, imported, context)
            }
            Self::Amplifier { path, declared } => {
                let file = &only_component(path)?;
                let options = declared.options(file, context)?;
                let wasm = read_component(file)?;
                let imported = import::amplifier(&wasm, &spec(file, &wasm)?, &options);
                declared.write(file, imported, context)
            }
            Self::Aml(arguments) => arguments.run(context),
            Self::Runloop(arguments) => arguments.run(context),
        }
    }
}

impl DeclaredFlags {
    fn options(&self, file: &Path, context: &Context) -> Result<ImportOptions> {
        let name = file.file_name().unwrap_or_default();
        Ok(ImportOptions {
            bundle: NewBundle {
                id: self.id.clone(),
                publisher: self.publisher.clone(),
                created: context.created()?,
            },
            workspaces: self.workspace.clone(),
            network: self.network.clone(),
            secrets: self.secret.clone(),
            read_only: self.read_only,
            file: name.to_string_lossy().into_owned(),
        })
    }

    fn write(
        &self,
        file: &Path,
        imported: Result<Imported, ImportError>,
        context: &Context,
    ) -> Result {
        let imported = imported.map_err(|error| failed(error).in_file(file))?;
        let todo = "describe each tool whose TOOL.md says TODO, then";
        written(&imported, &self.output, &self.id, todo, context)
    }
}

/// Writes the imported bundle, lists its files, and shows the next steps. `todo` is the first step.
fn written(
    imported: &Imported,
    directory: &Path,
    id: &str,
    todo: &str,
    context: &Context,
) -> Result {
    import::create(directory, imported).map_err(|error| failed(error).in_file(directory))?;
    let names: Vec<&String> = imported.files.iter().map(|(name, _)| name).collect();
    let left_out = imported.left_out.iter();
    let left_out = left_out
        .map(|left| json!({ "name": left.name, "reason": left.message, "code": left.code }));
    let remarks = imported.remarks.iter();
    let remarks =
        remarks.map(|one| json!({ "tool": one.name, "message": one.message, "code": one.code }));
    let value = json!({
        "ok": true, "directory": directory.display().to_string(), "tools": imported.tools, "files": names,
        "left_out": left_out.collect::<Vec<_>>(), "uncounted": imported.uncounted,
        "remarks": remarks.collect::<Vec<_>>(), "policy": imported.policy,
    });
    context.result(&value, places(directory, &names))?;
    for left in imported.left_out.iter().take(MAX_SHOWN) {
        let name = visible_line(&left.name, 200);
        let reason = visible_line(&left.message, 1000);
        context.note(format!("left out: {name}: {reason}"));
    }
    let more = imported.left_out.len().saturating_sub(MAX_SHOWN) + imported.uncounted;
    if more > 0 {
        context.note(format!("left out: {more} more"));
    }
    for remark in imported.remarks.iter().take(MAX_REMARKS) {
        let message = visible_line(&remark.message, 1000);
        context.note(format!("note: {}: {message}", remark.name));
    }
    if let Some(more @ 1..) = imported.remarks.len().checked_sub(MAX_REMARKS) {
        context.note(format!("note: {more} more, which `--json` shows"));
    }
    if !imported.policy.is_empty() {
        let policy = visible(&imported.policy, MAX_POLICY);
        context.note(format!(
            "\nFor the policy of those who run it, after a look at each line:\n\n{}",
            policy.trim_end()
        ));
    }
    let directory = quoted(directory);
    let tool = imported.tools.first().map_or("", String::as_str);
    context.note(format!(
        "\nNext: {todo}\n  toolward check {directory}\n  toolward call {tool} --dev {directory} --set NAME=VALUE\n  toolward pack {directory} -o {id}.toolbundle --key PRIVATE.pem"
    ));
    Ok(())
}

fn failed(error: ImportError) -> Failure {
    let found = error.diagnostics().to_vec();
    crate::failure::failed(error).with_diagnostics(found)
}

/// Returns the files with wanted names in a directory, sorted by name. Returns at most one file
/// more than `limit`, which shows that there are too many.
fn files_in(
    directory: &Path,
    limit: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.map_err(|error| Failure::unreadable(directory, error))?;
    let entries = entries.filter_map(std::result::Result::ok);
    let wanted = entries.filter(|entry| is_wanted(&entry.file_name().to_string_lossy()));
    let mut found: Vec<PathBuf> = wanted.map(|entry| entry.path()).take(limit + 1).collect();
    found.sort();
    Ok(found)
}

/// Returns the file itself, or the only component in a directory.
fn only_component(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    match &files_in(path, usize::MAX - 1, |name| name.ends_with(".wasm"))?[..] {
        [only] => Ok(only.clone()),
        all => {
            let message = format!("it has {} files that end in .wasm", all.len());
            Err(Failure::unreadable(path, message).hint("name the component itself"))
        }
    }
}

/// Returns the description that a tool of Amplifier gives. The tool is called in a separate
/// process, which is confined like any other call.
fn spec(file: &Path, wasm: &[u8]) -> Result<String> {
    let failed = |error| failed(error).in_file(file);
    let surface = Surface::read(wasm).map_err(|error| failed(error.into()))?;
    import::usable(wasm, &surface, "amplifier").map_err(failed)?;
    let folder = tempfile::Builder::new().prefix("toolward-").tempdir();
    let folder = folder.map_err(|error| Failure::unreadable(&std::env::temp_dir(), error))?;
    let bundle = folder.path().join("bundle");
    let tool = import::spec_bundle(&bundle, wasm).map_err(failed)?;
    let mut call = Process::new(own_program(Code::BrokerUnavailable)?);
    call.args(["--json", "call", tool, "--input", "{}", "--no-cache"])
        .arg("--dev")
        .arg(&bundle)
        // The user's settings must not affect the call.
        .env_clear()
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let unanswered = |why: &str| {
        let message = format!("its `get-spec` gave no description: {why}");
        Failure::failed(Code::ImportSpecFailed, message)
            .in_file(file)
            .hint("`get-spec` returns JSON with name, description and parameters, and asks for nothing")
    };
    let called = call.output();
    let called = called.map_err(|error| unanswered(&error.to_string()))?;
    let reply: Value = serde_json::from_slice(&called.stdout).unwrap_or_default();
    match reply.get("value").and_then(Value::as_str) {
        Some(spec) => Ok(spec.to_owned()),
        None => {
            let message = reply.pointer("/error/message").and_then(Value::as_str);
            let message = visible_line(message.unwrap_or("it could not be called"), 300);
            Err(unanswered(&message))
        }
    }
}

/// The most bytes of all files of one import.
const MAX_TOTAL: usize = 64 * 1024 * 1024;

/// The bytes that the files of one import may still have. They are limited, since all files are in
/// memory before the first is examined.
struct Budget(usize);

impl Budget {
    /// Reads a file of at most `limit` bytes.
    fn read(&mut self, path: &Path, limit: usize) -> Result<Vec<u8>> {
        let size = path.metadata().map_or(0, |metadata| metadata.len());
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > self.0 && size <= limit {
            let message = format!("{}: more than {MAX_TOTAL} bytes of files", path.display());
            return Err(Failure::usage(Code::ImportTooMany, message));
        }
        let bytes = file::read(path, limit.min(self.0))?;
        self.0 = self.0.saturating_sub(bytes.len());
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_more_than_one_import_keeps_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        std::fs::write(&path, "12345678").unwrap();
        let mut budget = Budget(12);
        assert_eq!(budget.read(&path, 8).unwrap(), b"12345678");
        let refused = budget.read(&path, 8).unwrap_err();
        assert!(refused.to_string().contains("bytes of files"), "{refused}");
        assert_eq!(budget.0, 4);
    }
}
