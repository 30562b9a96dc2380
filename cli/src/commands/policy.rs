//! `policy`: shows the operator's grants by tool, and checks a policy file. Only `grant` changes a
//! file.

mod suggest;

use toolward_mcp::documents::{DocumentVerdict, verdicts};
use toolward_operator::bundles::SourceKind;
use toolward_operator::config::{ConfigFile, default_config};
use toolward_operator::doctor::{policy_warnings, unused_rule_warnings};
use toolward_operator::host_setup;
use toolward_operator::policy_review::{PolicyReview, ToolRow};

use crate::prelude::*;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List a bundle's tools (allowed, asking a person, or blocked), and its prompts and resources
    /// (served or hidden)
    List(Subject),
    /// Write the smallest policy that lets a bundle's tools run and clients see its prompts and
    /// resources
    Suggest(suggest::Suggest),
    /// Add to the policy's file what `suggest` prints, after you have seen it and typed a yes
    Grant(suggest::GrantFlags),
    /// Check a policy file
    Check {
        /// The file [default: toolward.toml in the user's configuration directory]
        file: Option<PathBuf>,
    },
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result {
        match self {
            Self::List(subject) => list(subject, context),
            Self::Suggest(arguments) => suggest::suggest(arguments, context),
            Self::Grant(arguments) => suggest::grant(arguments, context),
            Self::Check { file } => check(file.as_ref(), context),
        }
    }
}

/// Bundles, and the policy under which they are reviewed.
#[derive(Debug, Args)]
pub(crate) struct Subject {
    #[command(flatten)]
    pub(super) source: Flagged<BundleSource>,

    #[command(flatten)]
    pub(super) policies: Flagged<PolicyFiles>,
}

impl Subject {
    pub(crate) fn review(&self, context: &Context) -> Result<PolicyReview> {
        PolicyReview::read(&self.source, &self.policies, context)
    }

    /// If this is the name of an installed tool that was left out, returns why it was.
    pub(crate) fn withheld(
        &self,
        review: &PolicyReview,
        name: &str,
        context: &Context,
    ) -> Result<Option<Failure>> {
        let contents = review.bundles.iter().map(|(content, _)| content);
        self.source.withheld(name, contents, context)
    }
}

/// Checks a policy file. Use `policy list` and `show --policy` to see whether it fits a bundle.
fn check(file: Option<&PathBuf>, context: &Context) -> Result {
    let path = match file {
        Some(path) => path.clone(),
        None => default_config(context).ok_or_else(|| {
            Failure::usage(Code::PolicyMissing, "there is no configuration directory")
                .hint("name the file to check")
        })?,
    };
    let file = ConfigFile::read(&path)?;
    // Checks that report a position in the file come first. The file could be read, so a problem in
    // it fails the check and is not a usage error.
    let failed = |failure: Failure| failure.of_kind(Kind::Failed);
    let policy = file.policy().map_err(failed)?;
    let trust = file.trust_store().map_err(failed)?;
    host_setup::transport(&policy).map_err(failed)?;
    file.check_settings().map_err(failed)?;
    let mut warnings = policy_warnings(&policy, &trust);
    let source = BundleSource {
        trust: Trust::of_config(Some(path.clone())),
        ..BundleSource::default()
    };
    let none = PolicyFiles::default();
    warnings.extend(unused_rule_warnings(&source, &none, context));
    let count = [
        ("grant", policy.grants().count()),
        ("deny rule", policy.denies().count()),
        ("workspace", policy.tables().workspaces.len()),
        ("secret", policy.tables().secrets.len()),
        ("service", policy.tables().services.len()),
        ("share", policy.tables().shares.len()),
        ("document rule", policy.tables().documents.len()),
    ];
    if context.json() {
        let counts = count.map(|(name, number)| (name.replace(' ', "_"), number.into()));
        return context.value(&json!({
            "ok": true,
            "file": path.display().to_string(),
            "counts": serde_json::Map::from_iter(counts),
            "warnings": warnings,
        }));
    }
    for warning in &warnings {
        context.warning(warning);
    }
    let found = count.iter().filter(|(_, number)| *number > 0);
    let found = found.map(|(name, number)| counted(*number, name));
    let found = match found.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "grants nothing".to_owned(),
        found => found,
    };
    let verdict = if warnings.is_empty() { "fine" } else { "valid" };
    context.line(format!("{}: {verdict} ({found})", path.display()))
}

/// Longest name or list of reasons, in characters.
const MAX_SHOWN_CHARS: usize = 1000;
/// Longest name of a publisher, in characters.
const MAX_PUBLISHER_CHARS: usize = 200;

fn list(subject: &Subject, context: &Context) -> Result {
    let review = subject.review(context)?;
    let rows = review.rows()?;
    let documents = documents(&review);
    let refused = subject.source.refused(context)?;
    if rows.is_empty() && documents.is_empty() && refused.is_empty() {
        return Err(review.missing(None));
    }
    for row in &rows {
        context.result(row, tool_line(row))?;
    }
    for (tool, one, failure) in &refused {
        let (id, publisher) = (&one.id, &one.publisher);
        let reason = format!("{} ({})", failure.message, failure.code);
        let value = json!({
            "tool": tool,
            "driver": null,
            "publisher": publisher,
            "state": "refused",
            "bundle": id,
            "code": failure.code,
            "reasons": [reason],
        });
        let reason = shown(&reason);
        context.result(&value, format_args!("REFUSED  {tool} of {id}: {reason}"))?;
    }
    // Only for installed bundles: with named bundles, an unused rule may be for another bundle.
    if subject.source.kind() == SourceKind::Installed && refused.is_empty() {
        for unused in review.unused_rules() {
            context.warning(shown(&unused));
        }
    }
    for rule in review.action_rules() {
        let tools = match rule.tools.as_slice() {
            [] => "no tool".to_owned(),
            tools => shown(&tools.join(", ")),
        };
        context.result(&rule, format_args!("{} covers {tools}", shown(&rule.rule)))?;
    }
    for document in &documents {
        context.result(&document_json(document), document_line(document))?;
    }
    Ok(())
}

fn shown(text: &str) -> String {
    visible_line(text, MAX_SHOWN_CHARS)
}

fn tool_line(row: &ToolRow) -> String {
    let word = state_word(row.state);
    let mut line = format!("{word:<7}  {}", row.tool);
    if let (Some(id), Some(publisher)) = (&row.driver, &row.driver_publisher) {
        line.push_str(&format!(" with {id}"));
        if *publisher != row.publisher {
            let publisher = visible_line(publisher, MAX_PUBLISHER_CHARS);
            line.push_str(&format!(" by ANOTHER publisher, {publisher}"));
        }
    }
    if !row.reasons.is_empty() {
        line.push_str(&format!(": {}", shown(&row.reasons.join("; "))));
    }
    if !row.without.is_empty() {
        line.push_str(&format!(" (without {})", shown(&row.without.join(", "))));
    }
    line
}

/// Returns the verdict about each prompt and resource: whether MCP clients see it, and if not, why.
/// The server decides by the same verdicts.
pub(super) fn documents(review: &PolicyReview) -> Vec<DocumentVerdict<'_>> {
    let bundles = review.bundles.iter();
    let verdicts = bundles.flat_map(|(content, _)| verdicts(content, &review.granted.policy));
    verdicts.collect()
}

pub(super) fn document_json(verdict: &DocumentVerdict<'_>) -> Value {
    json!({
        "document": verdict.id,
        "kind": verdict.kind.to_string(),
        "bundle": verdict.content.manifest.id,
        "publisher": verdict.content.origin.publisher(),
        "state": if verdict.hidden.is_none() { "served" } else { "hidden" },
        "name": verdict.name,
        "asks_for": verdict.asks,
        "reasons": verdict.hidden.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Formats a verdict as one line that starts with the outcome.
pub(super) fn document_line(verdict: &DocumentVerdict<'_>) -> String {
    let word = match verdict.hidden {
        None => "served ",
        Some(_) => "HIDDEN ",
    };
    let (kind, id) = (verdict.kind, shown(verdict.id));
    let bundle = shown(verdict.content.manifest.id.as_str());
    let mut line = format!("{word}  {kind} {id} of {bundle}");
    match &verdict.hidden {
        Some(why) => line.push_str(&format!(": {}", shown(&why.to_string()))),
        None if verdict.name != verdict.id => {
            line.push_str(&format!(" as {}", shown(&verdict.name)));
        }
        None => {}
    }
    if let Some(asks) = &verdict.asks {
        line.push_str(&format!("; it asks to go by {}", shown(asks)));
    }
    line
}
