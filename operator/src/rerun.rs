//! Recorded calls made again, and the differences in their results. Each is a new call of its recorded principal, under
//! today's policy, drivers, quotas and approvals; its row names the recorded one.

use std::collections::HashMap;

use serde_json::{Value, json};
use toolward_bundle::content::Content;
use toolward_bundle::surface::BundleSurface;
use toolward_host::{Host, Reply, Request, has_hidden};
use toolward_ledger::payload::PayloadKind;
use toolward_ledger::{EndRow, MissingPayload, RecordedCall};

use crate::error::Result;
use crate::replay::{RecordedResult, Replay, ReplayedCall, major_id};

/// A recorded call that can be made once more.
#[derive(Debug)]
pub struct Rerun {
    /// What was recorded.
    pub replayed: ReplayedCall,
    /// The call to make.
    pub request: Request,
    /// Whether it may change something, itself or by a tool that it reaches.
    pub writes: bool,
}

/// Why a recorded call is not made once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoRerun {
    /// A tool made it: the call of that tool makes it again.
    Nested,
    /// It was itself answered from a cassette.
    Replayed,
    /// The record names no tool, or it was pruned.
    Unnamed,
    /// The principal's name was erased.
    Nameless,
    /// Its input is missing.
    Input(MissingPayload),
    /// Sensitive values of its input were not recorded.
    Hidden,
    /// No tool of this id is here.
    NotInstalled,
    /// The policy lets no driver of the tool run.
    Blocked,
}

/// One thing that came out differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RerunDifference {
    /// `value`, `code`, `driver` or `surface`.
    pub what: &'static str,
    /// What was recorded; null where there was none.
    pub before: Value,
    /// What it is now; null where there is none.
    pub now: Value,
}

impl NoRerun {
    /// The reason, for people.
    #[must_use]
    pub fn message(self, replay: &Replay<'_>) -> String {
        match self {
            Self::Nested => "a tool made it; the call of that tool makes it again".to_owned(),
            Self::Replayed => "it was answered from a cassette itself".to_owned(),
            Self::Unnamed => "the record names no tool".to_owned(),
            Self::Nameless => "its principal's name was erased".to_owned(),
            Self::Input(missing) => format!("its input is missing: {}", replay.explain(missing)),
            Self::Hidden => "its input had sensitive values, which are not recorded".to_owned(),
            Self::NotInstalled => "the tool is not installed".to_owned(),
            Self::Blocked => "the policy lets no driver of the tool run".to_owned(),
        }
    }
}

/// Makes a call once more, if that can be done.
///
/// # Errors
/// The errors of the ledger.
pub fn prepare(
    call: RecordedCall,
    host: &Host,
    replay: &Replay<'_>,
) -> Result<Result<Rerun, (NoRerun, ReplayedCall)>> {
    let input = replay.payload(&call, PayloadKind::Input)?;
    let replayed = replay.of(call)?;
    Ok(match request(&replayed, input, host) {
        Ok((request, writes)) => Ok(Rerun {
            replayed,
            request,
            writes,
        }),
        Err(why) => Err((why, replayed)),
    })
}

fn request(
    replayed: &ReplayedCall,
    input: Result<Value, MissingPayload>,
    host: &Host,
) -> Result<(Request, bool), NoRerun> {
    let recorded = &replayed.call;
    let call = recorded.call.as_ref().ok_or(NoRerun::Unnamed)?;
    if call.parent.is_some() {
        return Err(NoRerun::Nested);
    }
    if matches!(recorded.end, EndRow::Replayed(..)) {
        return Err(NoRerun::Replayed);
    }
    let tool = call.tool.as_ref().ok_or(NoRerun::Unnamed)?;
    let name = major_id(tool.id.as_str());
    let principal = replayed.principal.clone().ok_or(NoRerun::Nameless)?;
    let input = input.map_err(NoRerun::Input)?;
    if has_hidden(&input) {
        return Err(NoRerun::Hidden);
    }
    let info = host.tool(&name).ok_or(NoRerun::NotInstalled)?;
    let effects = info.effects().ok_or(NoRerun::Blocked)?;
    let request = Request::with_value(name, input)
        .principal(principal)
        .rerun_of(recorded.invocation);
    Ok((request, effects.writes))
}

/// The digests of what a model or a policy sees of each bundle, by the digest of its manifest.
#[derive(Debug, Default)]
pub struct Surfaces(HashMap<String, String>);

impl Surfaces {
    /// The surfaces of these bundles.
    #[must_use]
    pub fn of(contents: &[Content]) -> Self {
        let surfaces = contents.iter().map(|content| {
            let surface = BundleSurface::of(content).digest();
            (content.manifest_digest.to_string(), surface.to_string())
        });
        Self(surfaces.collect())
    }
}

/// The differences between a recorded call and the new call. If the recorded output is missing, its value is not
/// compared.
#[must_use]
pub fn differences(
    replayed: &ReplayedCall,
    reply: &Reply,
    host: &Host,
    surfaces: &Surfaces,
) -> Vec<RerunDifference> {
    let mut found = Vec::new();
    let mut compare = |what, before: Value, now: Value| {
        if before != now {
            found.push(RerunDifference { what, before, now });
        }
    };
    let call = replayed.call.call.as_ref();
    let outcome = replayed.call.end.outcome();
    let code = outcome.and_then(|outcome| outcome.code.as_ref());
    let now = reply.result.as_ref().err().map(|error| error.code.as_str());
    compare("code", json!(code), json!(now));
    let info = host.tool(&major_id(&reply.metadata.tool));
    if let (RecordedResult::Output(before), Ok(output)) = (&replayed.result, &reply.result) {
        let now = match &info {
            // As it would be recorded.
            Some(info) => info.contract.outputs.observable(&output.structured),
            None => output.structured.clone(),
        };
        let before = before.get("value").cloned().unwrap_or_default();
        compare("value", before, now);
    }
    let driver = call.and_then(|call| call.driver.as_ref());
    let part = |id: Option<&str>, bundle: Option<String>| match id {
        Some(id) => json!({ "id": id, "bundle": bundle }),
        None => Value::Null,
    };
    compare(
        "driver",
        part(
            driver.map(|driver| driver.id.as_str()),
            driver.map(|driver| driver.bundle.to_string()),
        ),
        part(
            reply.metadata.driver.as_deref(),
            reply.metadata.bundle.as_deref().map(str::to_owned),
        ),
    );
    if let Some(surface) = call.and_then(|call| call.surface) {
        let now = info.and_then(|info| surfaces.0.get(&*info.bundle).cloned());
        compare("surface", json!(surface), json!(now));
    }
    found
}
