//! Makes the request of a call from its flags. Also records calls that the command refuses before a
//! host exists, in the same way as a host records the calls that it refuses.

use std::io::Read;
use std::time::Duration;

use toolward_bundle::arguments::{self, Setting};
use toolward_contract::json::{self, Limits};
use toolward_contract::tool::CONTEXT_PIN;
use toolward_host::{CallError, ErrorClass, ErrorCode, Host, LOCAL, Native, RefusedCall, Request};
use toolward_operator::recorder::StartedRecorder;

use super::Arguments;
use crate::helper;
use crate::prelude::*;

/// Longest input that is read, in bytes. The host accepts less, and its error names its limit.
const MAX_INPUT_BYTES: u64 = 64 * 1024 * 1024;

impl Arguments {
    /// Whether the tool needs an input, but none is given.
    pub(super) fn lacks_input(&self, contents: &[Content]) -> bool {
        let mut tools = contents
            .iter()
            .filter_map(|content| content.tool(self.tool_id()));
        let empty = Value::Object(Map::new());
        self.input.is_none()
            && self.set.is_empty()
            && tools.any(|entry| entry.tool.inputs.validate(&empty).is_err())
    }

    fn tool_id(&self) -> &str {
        self.tool.split('@').next().unwrap_or_default()
    }

    /// Returns the request. With `--format agent-tool`, whose records show the input, also returns
    /// the input if it is valid JSON.
    pub(super) fn request(
        &self,
        contents: &[Content],
        context: &Context,
    ) -> Result<(Request, Option<Value>)> {
        let id = self.tool_id();
        let mut entries = contents.iter().filter_map(|content| content.tool(id));
        let contract = entries.next().map(|entry| &entry.tool);
        let text = self.input.as_deref().map(document).transpose()?;
        #[cfg(feature = "adapters")]
        let recorded = self.format == Some(super::Format::AgentTool);
        #[cfg(not(feature = "adapters"))]
        let recorded = false;
        let (mut request, input) = match (text, self.set.is_empty()) {
            (Some(text), true) => {
                // The host parses the text itself.
                let input = recorded.then(|| parse("--input", &text).ok()).flatten();
                (Request::new(self.tool.as_str(), text), input)
            }
            (text, _) => {
                let base = text.map(|text| parse("--input", &text)).transpose()?;
                let base = base.unwrap_or_else(|| Value::Object(Map::new()));
                let schema = contract.map(|tool| tool.inputs.value());
                let settings: Result<Vec<Setting>> =
                    self.set.iter().map(|one| setting(one)).collect();
                let input = arguments::apply(base, &settings?, schema);
                let input = input.map_err(|error| Failure::of(Kind::Usage, error))?;
                let seen = recorded.then(|| input.clone());
                (Request::with_value(self.tool.as_str(), input), seen)
            }
        };
        if let Some(given) = &self.context {
            let given = parse("--context", &document(given)?)?;
            let members = given.as_object();
            let only_pins =
                members.is_some_and(|all| all.len() == 1 && all.contains_key(CONTEXT_PIN));
            if contract.is_some_and(|tool| tool.context_schema.is_none()) && !only_pins {
                context.warning(format!("--context is not used: {id} has no contextSchema"));
            }
            request = request.context(given);
        }
        if let Some(milliseconds) = self.timeout {
            request = request.timeout(Duration::from_millis(milliseconds));
        }
        if let Some(id) = &self.id {
            request = request.named(id);
        }
        if let Some(driver) = &self.driver {
            request = request.pinned_driver(driver.as_str());
        }
        Ok((request, input))
    }

    /// Records that the call ends with this failure before it reaches a host, and returns the
    /// failure. If recording fails, only writes a warning, since the failure states why the call
    /// ends.
    pub(super) fn ends(
        &self,
        contents: &[Content],
        started: Option<StartedRecorder>,
        (code, class): (ErrorCode, ErrorClass),
        failure: Failure,
        context: &Context,
    ) -> Failure {
        let error = CallError::new(code, class, failure.message.as_str());
        if let Some(started) = started
            && let Err(unrecorded) = self.record(contents, started, &error, context)
        {
            (context.report).warning_of("the call is not recorded", &unrecorded);
        }
        failure
    }

    fn record(
        &self,
        contents: &[Content],
        started: StartedRecorder,
        error: &CallError,
        context: &Context,
    ) -> Result {
        let trust = &self.source.trust;
        let granted = Granted::read(trust, &self.means.policies, context)?;
        let confinement = self.confine.recorded(trust, context)?;
        let recorder = started.begin(contents, Some(&granted), confinement)?;
        // Nothing runs in this host.
        let builder = Host::builder().policy(granted.policy.clone());
        let contents = contents.iter().cloned();
        let builder = contents.fold(builder.defer_engine(), |builder, content| {
            builder.bundle(content)
        });
        let host = recorder.records(builder, &granted).build()?;
        let tool = self.tool.as_str();
        runtime()?.block_on(host.refused(RefusedCall {
            principal: LOCAL,
            name: tool,
            tool: Some(tool),
            native: &Native::default(),
            error,
        }));
        helper::close_recorder(Some(&recorder), context);
        Ok(())
    }
}

/// The failure for a word that should have been the value of a flag.
pub(super) fn not_a_flag(tool: &str, stray: &str) -> Failure {
    let hint = match stray {
        json if json.starts_with(['{', '[']) => format!("write --input '{json}'"),
        setting if setting.contains('=') => format!("write --set {setting}"),
        _ => format!("`toolward show {tool}` lists the inputs: give them with --set KEY=VALUE"),
    };
    let message = format!("expected flags after the tool's id, found {stray:?}");
    Failure::usage(OperatorCode::SettingInvalid, message).hint(hint)
}

/// Reads the text of `JSON`, `@FILE` or `-`.
fn document(argument: &str) -> Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => file_text(path.as_ref()),
        None if argument == "-" => {
            let text = text_of(std::io::stdin().lock());
            text.map_err(|error| Failure::unreadable("standard input".as_ref(), error))
        }
        None => Ok(argument.to_owned()),
    }
}

fn file_text(path: &Path) -> Result<String> {
    let text = std::fs::File::open(path).and_then(text_of);
    text.map_err(|error| Failure::unreadable(path, error))
}

fn text_of(source: impl Read) -> std::io::Result<String> {
    std::io::read_to_string(source.take(MAX_INPUT_BYTES))
}

fn parse(flag: &str, text: &str) -> Result<Value> {
    let limits = Limits {
        bytes: usize::try_from(MAX_INPUT_BYTES).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    json::parse(text.as_bytes(), &limits).map_err(|error| {
        let (line, column) = (error.line, error.column);
        let message = format!("{flag}: line {line}, column {column}: {}", error.message);
        Failure::with_code(Kind::Usage, error.code(), message).hint(format!(
            "write JSON, names and texts in double quotes: {flag} '{{\"KEY\": \"TEXT\"}}'"
        ))
    })
}

fn setting(argument: &str) -> Result<Setting> {
    let Some((key, value)) = argument.split_once('=') else {
        let message = format!("--set {argument:?}: there is no `=`");
        return Err(Failure::usage(OperatorCode::SettingInvalid, message)
            .hint("write --set KEY=VALUE, or --set KEY=@FILE for a file's text"));
    };
    Ok(match value.strip_prefix('@') {
        Some(path) => Setting::text(key, file_text(path.as_ref())?),
        None => Setting::literal(key, value),
    })
}
