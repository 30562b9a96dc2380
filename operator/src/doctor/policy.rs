//! Checks of the policy: its files, and whether everything that its grants refer to exists. Values
//! of secrets are looked up, but never shown.

use std::path::Path;

use toolward_host::secrets::SecretStore as _;
use toolward_host::{Host, LOCAL};
use toolward_policy::{
    ContextRule, LimitName, LimitSetting, Policy, SecretSource, ServiceRule, Workspace,
};
use toolward_signing::trust::TrustStore;

use super::{Check, CheckState, directory, mode};
use crate::bundles::BundleSource;
use crate::granted::{Granted, PolicyFiles};
use crate::host_setup;
use crate::policy_review::PolicyReview;
use crate::trust::Trust;
use crate::{Environment, Silent, joined};

/// Checks the policy and everything it names.
pub fn policy(trust: &Trust, files: &PolicyFiles, environment: &Environment) -> Vec<Check> {
    let Ok(file) = trust.file(environment) else {
        // The check of the configuration reports this error.
        return Vec::new();
    };
    let granted = match Granted::read(trust, files, environment) {
        Ok(granted) => granted,
        Err(failure) => return vec![Check::of(Err(failure)).named("policy")],
    };
    if granted.files.is_empty() {
        let none = "there is none: tools that ask for something are blocked";
        return vec![
            Check::note(none).named("policy"),
            state_directory(environment),
        ];
    }
    let policy = &granted.policy;
    let files = joined(granted.files.iter().map(|file| file.display()), ", ");
    let (grants, denies) = (policy.grants().count(), policy.denies().count());
    let found = format!("{files} ([[grant]]: {grants}, [[deny]]: {denies})");
    let mut checks = vec![Check::ok(found).named("policy")];
    let store = file.map(|_| trust.trusted(environment));
    let store = store.and_then(|trusted| trust.store_of(&trusted.ok()?, environment).ok());
    if let Some(store) = store {
        let unknown = unknown_publishers(policy, &store).into_iter();
        checks.extend(unknown.map(|warning| Check::warning(warning).named("policy")));
    }
    if let Some(file) = &policy.tables().ca_file {
        let authorities = Check::of(host_setup::transport(policy).map(|_| Check::ok(file)));
        checks.push(authorities.named("ca-file"));
    }
    let workspaces = policy.tables().workspaces.iter();
    checks.extend(workspaces.map(|one| workspace(one).named("workspace")));
    checks.extend(overlaps(&granted, trust, environment));
    checks.extend(secrets(policy, environment));
    let contexts = policy.tables().contexts.iter();
    checks.extend(contexts.map(|one| context(one).named("context")));
    checks.extend(policy.tables().services.iter().filter_map(service));
    checks.push(state_directory(environment));
    checks.extend(buckets(environment));
    checks.push(limits(policy).named("limits"));
    checks.extend(memory(policy));
    checks
}

/// Returns warnings about each `[[grant]]` and `[[context]]` without effect on the installed
/// bundles. Returns nothing if no bundle is installed or if any bundle is not loaded, since other
/// checks report that.
pub fn unused_rules(
    source: &BundleSource,
    files: &PolicyFiles,
    environment: &Environment,
) -> Vec<Check> {
    let Some(review) = review_of_all(source, files, environment) else {
        return Vec::new();
    };
    let grants = review.unmatched_grants().into_iter().map(|unmatched| {
        Check::warning(unmatched)
            .named("grant")
            .hint("correct its publisher or tool, install the bundle, or remove the grant")
    });
    let contexts = review.unused_contexts().into_iter().map(|unused| {
        Check::warning(unused)
            .named("context")
            .hint("correct its publisher or tool, install the bundle, or remove the [[context]]")
    });
    grants.chain(contexts).collect()
}

/// Describes the rules of a policy that have no effect on the installed bundles.
pub fn unused_rule_warnings(
    source: &BundleSource,
    files: &PolicyFiles,
    environment: &Environment,
) -> Vec<String> {
    let review = review_of_all(source, files, environment);
    review.map_or_else(Vec::new, |review| review.unused_rules())
}

/// Reviews the policy for all bundles. Returns `None` if a bundle is not loaded, since its tools
/// are then unknown, or if the review fails.
fn review_of_all(
    source: &BundleSource,
    files: &PolicyFiles,
    environment: &Environment,
) -> Option<PolicyReview> {
    let environment = &environment.reporting(Silent);
    let refused = source.refused(environment).ok()?;
    refused.is_empty().then_some(())?;
    PolicyReview::read(source, files, environment).ok()
}

fn workspace(workspace: &Workspace) -> Check {
    let directory = &workspace.directory;
    let shown = format!("{} is {}", workspace.path, directory.display());
    if workspace.is_placeholder() {
        return Check::warning(format!("{shown}, which nobody has chosen yet"))
            .hint("write the directory that the tools shall have");
    }
    match std::fs::read_dir(directory) {
        Err(error) => Check::warning(format!("{shown}: {error}"))
            .hint("make the directory, or let your user read it"),
        Ok(_) if is_writable(directory) => Check::ok(shown),
        Ok(_) => Check::note(format!("{shown}, and can't be written")),
    }
}

fn is_writable(directory: &Path) -> bool {
    rustix::fs::access(directory, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Checks with the host's own rules that no workspaces overlap or are in a protected directory.
fn overlaps(granted: &Granted, trust: &Trust, environment: &Environment) -> Option<Check> {
    let builder = Host::builder().policy(granted.policy.clone());
    let builder = host_setup::protect(builder, granted, trust, environment).ok()?;
    let error = builder.build().err()?;
    Some(
        Check::error(error.to_string())
            .maybe_hint(error.hint())
            .named("workspaces"),
    )
}

/// Checks that the values of a `[[context]]` exist. They are never shown.
fn context(rule: &ContextRule) -> Check {
    let principal = rule.principal.as_deref().unwrap_or("everybody");
    let name = format!("{} of {} for {principal}", rule.tool, rule.publisher);
    if rule.is_placeholder() {
        let waits = format!("{name}: nobody has chosen yet who gets it and where it comes from");
        return Check::warning(waits).hint("replace what `# choose` marks in its [[context]]");
    }
    let problems = rule
        .problems()
        .map(|(value, why)| format!("{value}: {why}"));
    let problems: Vec<String> = problems.collect();
    match problems.as_slice() {
        [] => Check::ok(format!("{name} has its values")),
        some => Check::warning(format!("{name}: {}", some.join("; ")))
            .hint("the tool is blocked until each value is there"),
    }
}

fn secrets(policy: &Policy, environment: &Environment) -> Vec<Check> {
    let sources = host_setup::sources(policy, environment.state_directory.as_deref(), environment);
    let check = |secret: &toolward_policy::Secret| {
        let name = format!("{} of {}", secret.slug, secret.publisher);
        if secret.is_placeholder() {
            let waits = format!("{name}: nobody has chosen yet where it comes from and goes");
            return Check::warning(waits)
                .hint("write the variable and the origin that it shall have");
        }
        let (place, without, missing) = match &secret.source {
            SecretSource::Env(variable) => (
                format!("from the variable {variable}"),
                CheckState::Warning,
                format!("set {variable} where toolward runs"),
            ),
            SecretSource::File(file) => (
                format!("from {file}"),
                CheckState::Warning,
                format!("write the value into {file}, and chmod 600"),
            ),
            // The tool that stores the secret may not have run yet.
            SecretSource::Store => (
                "stored by a tool".to_owned(),
                CheckState::Note,
                "a tool that stores it has to run first".to_owned(),
            ),
        };
        match sources.get(secret.publisher.as_str(), LOCAL, &secret.slug) {
            Ok(Some(_)) => Check::ok(format!("{name}, {place}, has a value")),
            Ok(None) => Check::new(without, format!("{name}, {place}, has no value")).hint(missing),
            Err(error) => Check::error(format!("{name}: {error}"))
                .hint("only you may have access to it: chmod 600"),
        }
    };
    let secrets = policy.tables().secrets.iter();
    secrets.map(|one| check(one).named("secret")).collect()
}

fn service(service: &ServiceRule) -> Option<Check> {
    service.is_placeholder().then(|| {
        let waits = format!("{}: nobody has chosen its hosts yet", service.name);
        Check::warning(waits)
            .named("service")
            .hint("write the hosts that the tools shall reach")
    })
}

fn state_directory(environment: &Environment) -> Check {
    let later = "not there yet, the first tool that keeps something makes it";
    let state = ("state", environment.state_directory.as_deref());
    directory(state, later, |path| {
        Check::ok(format!("{} (mode {})", path.display(), mode(path)))
    })
    .named("state")
}

/// Checks that the buckets (the tools' key-value data) can be opened. Does not create them.
fn buckets(environment: &Environment) -> Option<Check> {
    let state = environment.state_directory.as_ref()?;
    let file = host_setup::buckets(state);
    file.exists().then(|| {
        let opened = host_setup::open_buckets(state);
        Check::of(opened.map(|_| Check::ok(file.display().to_string()))).named("buckets")
    })
}

/// The limits of the policy; the book has the defaults.
fn limits(policy: &Policy) -> Check {
    let limits = policy.tables().limits.iter();
    let limits = limits.map(
        |(name, LimitSetting { default, maximum })| match (default, maximum) {
            (Some(default), Some(maximum)) => format!("{name} {default}, at most {maximum}"),
            (Some(default), None) => format!("{name} {default}"),
            (None, Some(maximum)) => format!("{name} at most {maximum}"),
            (None, None) => format!("{name} as ever"),
        },
    );
    let limits: Vec<String> = limits.collect();
    let found = match limits.as_slice() {
        [] => "the defaults".to_owned(),
        some => format!("the defaults, but {}", some.join("; ")),
    };
    Check::ok(found)
}

/// Compares the policy's limit on the memory of all calls with this machine's memory. The default
/// limit always fits.
fn memory(policy: &Policy) -> Option<Check> {
    let setting = policy.tables().limits.get(LimitName::MemoryTotal);
    let total = setting.maximum.or(setting.default)?;
    let machine = toolward_host::memory::machine_bytes();
    let found = format!(
        "all calls together may take {} MiB (`memory_total`); this machine or control group has {} MiB",
        total >> 20,
        machine >> 20
    );
    let check = match total > machine / 4 * 3 {
        false => Check::ok(found),
        true => Check::warning(found)
            .hint("leave a quarter to the server itself: lower `memory_total` in [limits], or raise `MemoryMax`"),
    };
    Some(check.named("memory"))
}

/// Likely mistakes in a policy: unknown publishers, placeholders, missing directories.
pub fn policy_warnings(policy: &Policy, trust: &TrustStore) -> Vec<String> {
    let mut warnings = unknown_publishers(policy, trust);
    warnings.extend(policy.tables().workspaces.iter().filter_map(|workspace| {
        let (path, directory) = (&workspace.path, workspace.directory.display());
        if workspace.is_placeholder() {
            Some(format!(
                "the workspace {path} still waits for its directory: {directory}"
            ))
        } else if !workspace.directory.is_dir() {
            Some(format!(
                "the workspace {path} has no directory: {directory} is not there"
            ))
        } else {
            None
        }
    }));
    let secrets = policy.tables().secrets.iter();
    let secrets = secrets.filter(|one| one.is_placeholder());
    warnings.extend(secrets.map(|one| {
        let (slug, publisher) = (&one.slug, &one.publisher);
        format!(
            "the secret {slug} of {publisher} still waits for its source and origin: nobody gets it"
        )
    }));
    let services = policy.tables().services.iter();
    let services = services.filter(|one| one.is_placeholder());
    warnings.extend(services.map(|one| {
        let name = &one.name;
        format!("the service {name} still waits for its hosts: nobody gets it")
    }));
    warnings
}

/// Returns warnings about publishers that the policy names and the trust store lacks, since such
/// names are probably typing errors. Returns none if the trust store is empty.
fn unknown_publishers(policy: &Policy, trust: &TrustStore) -> Vec<String> {
    let mut warnings = Vec::new();
    let ad_hoc = |name: &str| name.starts_with("key:") || name.starts_with("dev:");
    let mut known = |name: &str, what: &str| {
        if trust.publishers().next().is_some() && !ad_hoc(name) && trust.publisher(name).is_none() {
            let warning = format!("{what} is about {name}, and no [[publisher]] has that name");
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
    };
    for rule in policy.grants() {
        known(rule.publisher.as_str(), "a [[grant]]");
        known(rule.driver_publisher.as_str(), "a [[grant]]");
        if let Some(action) = &rule.action {
            known(action.library.as_str(), "a [[grant]]");
        }
    }
    for publisher in policy.denies().filter_map(|rule| rule.publisher.as_ref()) {
        known(publisher.as_str(), "a [[deny]]");
    }
    for rule in &policy.tables().documents {
        known(rule.publisher.as_str(), "a [[document]]");
    }
    for secret in &policy.tables().secrets {
        known(secret.publisher.as_str(), "a [[secret]]");
    }
    for share in &policy.tables().shares {
        known(share.from.as_str(), "a [[share]]");
        known(share.to.as_str(), "a [[share]]");
    }
    warnings
}
