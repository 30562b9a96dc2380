//! `[[exec]]`: one table.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_contract::driver::Program;

use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::fields::{Fields, by_name, flag, integer, optional, own, required, table, texts, word};
use crate::name::{Publisher, ToolPattern};
use crate::toml_text::PLACEHOLDER_VARIABLE;

/// The most secrets, and the most workspaces, of one table.
const MAX_ENTRIES: usize = 32;
/// The most bytes of the name of a variable.
const MAX_NAME_BYTES: usize = 64;

/// The prefixes of variables that affect the code that a program loads, or the behaviour of its C
/// library.
const LOADING: [&str; 6] = ["LD_", "GLIBC_", "MALLOC_", "PYTHON", "PERL", "RUBY"];

/// `[[exec]]`: a program that runs outside the sandbox, for the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecRule {
    /// The publisher of the tool and of the document that names the program.
    pub publisher: Publisher,
    /// The tool, without wildcards.
    pub tool: ToolPattern,
    /// The program, by its absolute path. Never an interpreter or a program that starts other
    /// programs.
    pub command: String,
    /// The digest of the program's file.
    pub digest: ExecDigest,
    /// Its arguments, which follow the path of the file with the input. They must equal the
    /// arguments that the driver names.
    pub args: Vec<String>,
    /// The interpreter of the file, if it starts with `#!`.
    pub interpreter: Option<Interpreter>,
    /// The variables that hold the values of secrets, by the slugs of the secrets. A rule must
    /// `reveal` each of these secrets.
    pub env: BTreeMap<String, String>,
    /// Whether it may connect to any host (`network = "unfiltered"`).
    pub network: bool,
    /// The workspaces that it reaches, by their virtual paths.
    pub workspaces: BTreeMap<String, WorkspaceAccess>,
    /// Whether it may start processes, which all end with it.
    pub processes: bool,
    /// The limits of a run.
    pub limits: ExecLimits,
}

impl ExecRule {
    /// Whether the operator must still choose a value. Until then the program can't run.
    pub fn is_placeholder(&self) -> bool {
        let interpreter = self.interpreter.as_ref();
        let digests = interpreter.map(|interpreter| &interpreter.digest);
        digests
            .into_iter()
            .chain([&self.digest])
            .any(|digest| *digest == ExecDigest::Placeholder)
            || self.env.values().any(|name| name == PLACEHOLDER_VARIABLE)
    }

    /// Checks one table.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let wrong = |message: String| error::EXEC.error(message);
        if self.tool.has_wildcard() {
            return Err(wrong(format!("expected one tool, found \"{}\"", self.tool))
                .hinted("write one [[exec]] for each tool"));
        }
        Program::new(&self.command, &self.args).map_err(wrong)?;
        if let Some(interpreter) = &self.interpreter {
            Program::check_interpreter(&interpreter.path).map_err(wrong)?;
        }
        for (what, found) in [
            ("env", self.env.len()),
            ("workspaces", self.workspaces.len()),
        ] {
            if found > MAX_ENTRIES {
                return Err(wrong(format!(
                    "expected at most {MAX_ENTRIES} entries in `{what}`, found {found}"
                )));
            }
        }
        for name in self.env.values() {
            if name == PLACEHOLDER_VARIABLE {
                continue;
            }
            variable(name)?;
            if self.env.values().filter(|other| *other == name).count() > 1 {
                return Err(wrong(format!(
                    "expected each variable once, found {} again",
                    quoted(name)
                )));
            }
        }
        self.limits.check()
    }

    /// The name of the table, which must be unique in a policy. A tool has one program for all its
    /// versions, so that removing a table can't let another program take over.
    pub(crate) fn name(&self) -> String {
        let tool = self.tool.to_string();
        let id = tool.split_once('@').map_or(tool.as_str(), |(id, _)| id);
        format!("the program of {id} of {}", self.publisher)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let interpreter = |field| {
            table(field, "`interpreter`", |inner| {
                Ok(Interpreter {
                    path: required(inner, "path", own)?,
                    digest: required(inner, "digest", str::parse)?,
                })
            })
        };
        let network = |text: &str| match text {
            "unfiltered" => Ok(true),
            _ => Err(error::EXEC
                .expected("`network` to be \"unfiltered\"", text)
                .hinted("no rule filters what a program sends: leave the key out, or say so")),
        };
        let access = word(&error::EXEC, "a workspace to be read-only or read-write");
        let limits = |field| table(field, "`limits`", ExecLimits::read);
        Ok(Self {
            publisher: required(fields, "publisher", Publisher::parse)?,
            tool: required(fields, "tool", ToolPattern::parse)?,
            command: required(fields, "command", own)?,
            digest: required(fields, "digest", str::parse)?,
            // Required although it is often empty, so that the author of the table sees that the
            // program has no arguments.
            args: texts(&fields.required("args")?, own)?,
            interpreter: fields.take("interpreter").map(interpreter).transpose()?,
            env: by_name(fields, "env", own)?,
            network: optional(fields, "network", network)?.unwrap_or_default(),
            workspaces: by_name(fields, "workspaces", access)?,
            processes: flag(fields, "processes")?,
            limits: fields
                .take("limits")
                .map(limits)
                .transpose()?
                .unwrap_or_default(),
        })
    }
}

/// Checks that a text can name a secret's variable, and that the variable does not affect how
/// programs are loaded.
fn variable(name: &str) -> Result<(), PolicyError> {
    let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let good = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.chars().all(plain)
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if good && name != "PATH" && !LOADING.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(());
    }
    Err(error::EXEC
        .expected("`env` to give a variable for a secret", name)
        .hinted("write capital letters, digits and `_`; not a variable by which code is loaded"))
}

/// BLAKE3 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecDigest {
    /// The digest.
    Blake3([u8; 32]),
    /// The operator must still write the digest.
    Placeholder,
}

impl ExecDigest {
    /// The bytes, once the operator has chosen them.
    pub fn bytes(&self) -> Option<[u8; 32]> {
        match self {
            Self::Blake3(bytes) => Some(*bytes),
            Self::Placeholder => None,
        }
    }
}

impl FromStr for ExecDigest {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        if text == PLACEHOLDER_VARIABLE {
            return Ok(Self::Placeholder);
        }
        let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
        let digest = bytes.and_then(|bytes| Some(Self::Blake3(bytes.try_into().ok()?)));
        // Only one spelling of a digest is accepted.
        let digest = digest.filter(|digest| digest.to_string() == text);
        digest.ok_or_else(|| {
            error::EXEC
                .expected("`digest` to be 64 hex digits", text)
                .hinted("write the BLAKE3 digest of the file in lower case, as `b3sum` prints it")
        })
    }
}

impl fmt::Display for ExecDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blake3(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Placeholder => f.write_str(PLACEHOLDER_VARIABLE),
        }
    }
}

/// The interpreter of a file that starts with `#!`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// Its absolute path, as named in the file.
    pub path: String,
    /// The digest of the interpreter.
    pub digest: ExecDigest,
}

/// The access of a program to a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceAccess {
    /// Read only.
    ReadOnly,
    /// Read and write.
    ReadWrite,
}

impl WorkspaceAccess {
    pub(crate) fn of(write: bool) -> Self {
        match write {
            true => Self::ReadWrite,
            false => Self::ReadOnly,
        }
    }

    /// The word in a policy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::ReadWrite => "read-write",
        }
    }
}

/// The limits of one run of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecLimits {
    /// Wall-clock time. The call's own deadline applies, too.
    pub timeout_ms: u64,
    /// Address space of each of its processes, in MiB.
    pub memory_mib: u64,
    /// Processor time of each of its processes.
    pub cpu_seconds: u64,
    /// Bytes of its standard output.
    pub output_bytes: u64,
    /// The largest file that it may write, in bytes.
    pub file_bytes: u64,
}

impl Default for ExecLimits {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            memory_mib: 256,
            cpu_seconds: 30,
            output_bytes: 1 << 20,
            file_bytes: 16 << 20,
        }
    }
}

impl ExecLimits {
    /// Each number with its name, minimum and maximum. The maximum of `output_bytes` is low because
    /// broker and host hold the output in memory.
    pub(crate) fn rows(&mut self) -> [(&'static str, &mut u64, u64, u64); 5] {
        [
            ("timeout_ms", &mut self.timeout_ms, 1, 3_600_000),
            ("memory_mib", &mut self.memory_mib, 16, 1 << 20),
            ("cpu_seconds", &mut self.cpu_seconds, 1, 3600),
            ("output_bytes", &mut self.output_bytes, 1, 16 << 20),
            ("file_bytes", &mut self.file_bytes, 0, 1 << 40),
        ]
    }

    /// The limit on wall-clock time.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    fn check(mut self) -> Result<(), PolicyError> {
        for (name, value, least, most) in self.rows() {
            if !(least..=most).contains(value) {
                return Err(error::EXEC.error(format!(
                    "expected `{name}` to be from {least} to {most}, found {value}"
                )));
            }
        }
        Ok(())
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let mut limits = Self::default();
        for (name, value, ..) in limits.rows() {
            if let Some(field) = fields.take(name) {
                *value = integer(&field)?;
            }
        }
        Ok(limits)
    }
}
