//! Random policies about tools and drivers of two publishers: the host grants no more than contract
//! and policy, acts as the explanations state, and suggested lines let no other publisher's driver
//! serve.

mod model;
mod sets;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::json;
use tempfile::TempDir;
use toolward_bundle::content::{Content, ContentOrigin};
use toolward_contract::NoScope;
use toolward_contract::capability::Class;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_host::{
    ApprovalRequest, Approver, Cache, Host, HostBuilder, Request, SharedState, Verdict,
};
use toolward_policy::{
    Choices, Contract, Decision, ExplainedOutcome as Explained, Implementation, Machine, Policy,
    ToolRoutes,
};
use toolward_signing::Digest;

use crate::fixture::{Extra, Fixture};
use model::Outcome;
use sets::{PUBLISHERS, Random, Set, SetDriver, SetTool};

const SETS: usize = 2_000;
const SEED: u64 = 0x7001_3a2d;

/// A person who gives the same verdict each time.
struct Person {
    verdict: Verdict,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for Person {
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>> {
        self.asked.lock().unwrap().push(request.clone());
        Box::pin(async { self.verdict.clone() })
    }
}

/// The shared parts of all sets: one real driver, which is compiled once, and a directory for
/// `/notes`.
struct Bench {
    template: Content,
    directory: TempDir,
    shared_state: SharedState,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("notes")).unwrap();
        Self {
            template: Fixture::new(Extra::default()).content(),
            directory,
            shared_state: SharedState::new(),
        }
    }

    /// The bundles of both publishers.
    fn contents(&self, set: &Set) -> Vec<Content> {
        let of = |publisher: &str| {
            let mut content = self.template.clone();
            content.origin = ContentOrigin::Signed {
                publisher: publisher.to_owned(),
                signers: Vec::new(),
            };
            content.manifest_digest = Digest::of(publisher.as_bytes());
            let tool = content.tools.remove(0);
            let driver = content.drivers.remove(0);
            for one in set.tools.iter().filter(|one| one.publisher == publisher) {
                let mut entry = tool.clone();
                entry.tool = Arc::new(parsed_tool(one));
                content.tools.push(entry);
            }
            for one in set.drivers.iter().filter(|one| one.publisher == publisher) {
                let mut entry = driver.clone();
                entry.driver = Arc::new(parsed_driver(one));
                entry.component = entry.component.filter(|_| one.runs);
                content.drivers.push(entry);
            }
            content
        };
        PUBLISHERS.map(of).into()
    }

    fn builder(&self, set: &Set, policy: &Policy) -> HostBuilder {
        static CACHE: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
        let cache = Cache::open(CACHE.path().join("cache")).unwrap();
        let builder = Host::builder()
            .secrets(Valued)
            .policy(policy.clone())
            .cache(cache)
            .shared_state(&self.shared_state)
            .defer_engine();
        let contents = self.contents(set).into_iter();
        contents.fold(builder, HostBuilder::bundle)
    }
}

fn parsed_tool(one: &SetTool) -> Tool {
    let source = one.source();
    let parsed = Tool::parse("TOOL.md", &source, &NoScope);
    parsed
        .value
        .unwrap_or_else(|| panic!("{source}\n{:?}", parsed.diagnostics))
}

fn parsed_driver(one: &SetDriver) -> Driver {
    let source = one.source();
    let parsed = Driver::parse("DRIVER.md", &source);
    parsed
        .value
        .unwrap_or_else(|| panic!("{source}\n{:?}", parsed.diagnostics))
}

fn policy(set: &Set, directory: &Path) -> Policy {
    let text = set.policy(directory);
    Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The routes that `policy list`, `policy suggest` and `show --policy` compute.
fn told<'c>(contents: &'c [Content], policy: &Policy, machine: &Machine) -> Vec<ToolRoutes<'c>> {
    let publisher = |content: &'c Content| match &content.origin {
        ContentOrigin::Signed { publisher, .. } => publisher.as_str(),
        _ => panic!("signed"),
    };
    let tools: Vec<Contract<'_>> = contents
        .iter()
        .flat_map(|content| {
            content.tools.iter().map(move |entry| Contract {
                tool: &entry.tool,
                publisher: publisher(content),
            })
        })
        .collect();
    let drivers: Vec<Implementation<'_>> = contents
        .iter()
        .flat_map(|content| {
            content.drivers.iter().map(move |entry| Implementation {
                driver: &entry.driver,
                publisher: publisher(content),
            })
        })
        .collect();
    toolward_policy::routes(&tools, &drivers, policy, machine).unwrap()
}

fn outcome(decision: &Decision) -> Outcome {
    match decision {
        Decision::Allow(_) => Outcome::Runs,
        Decision::Ask(..) => Outcome::Asks,
        Decision::Deny(_) => Outcome::Blocked,
    }
}

fn driver<'s>(set: &'s Set, id: &str) -> &'s SetDriver {
    set.drivers.iter().find(|one| one.id == id).unwrap()
}

/// Everything in a grant, as pairs of a capability and whether it may be changed.
fn granted(decision: &Decision) -> Vec<(String, bool)> {
    let Some(grant) = decision.grant() else {
        return Vec::new();
    };
    let hosts = grant.network().iter();
    let hosts = hosts.map(|one| (format!("network:{}", one.host), one.unsafe_methods));
    let workspaces = grant.workspaces().iter();
    let workspaces = workspaces.map(|one| (format!("workspace:{}", one.path), one.write));
    let buckets = grant.buckets().iter();
    let buckets = buckets.map(|one| (format!("database:{}", one.name), one.write));
    let secrets = grant.secrets().iter();
    let secrets = secrets.map(|one| (format!("secret:{}", one.slug), one.store));
    let scopes = Class::KNOWN.iter().flat_map(|class| {
        let scopes = grant.scopes(class).iter();
        scopes.map(move |scope| (format!("{class}:{scope}"), false))
    });
    hosts
        .chain(workspaces)
        .chain(buckets)
        .chain(secrets)
        .chain(scopes)
        .collect()
}

/// Counts how often each interesting case occurred, since a test without cases would pass, too.
#[derive(Default)]
struct Seen(BTreeMap<&'static str, usize>);

impl Seen {
    fn note(&mut self, what: &'static str, holds: bool) {
        *self.0.entry(what).or_default() += usize::from(holds);
    }

    #[track_caller]
    fn at_least(&self, least: usize, whats: &[&str]) {
        for what in whats {
            let seen = self.0.get(what).copied().unwrap_or(0);
            assert!(seen >= least, "{what}: {seen} times, of {:?}", self.0);
        }
    }
}

#[tokio::test]
async fn the_host_gives_contract_and_policy_and_does_what_is_told_of_it() {
    let bench = Bench::new();
    let mut random = Random::new(SEED);
    let mut seen = Seen::default();
    for number in 0..SETS {
        let set = Set::new(&mut random);
        let policy = policy(&set, bench.directory.path());
        let builder = bench.builder(&set, &policy);
        let machine = builder.machine().unwrap();
        let person = Arc::new(Person {
            verdict: match random.chance(50) {
                true => Verdict::Approved,
                false => Verdict::Denied(None),
            },
            asked: Mutex::default(),
        });
        let host = builder.build().unwrap();
        let contents = bench.contents(&set);
        let told = told(&contents, &policy, &machine);
        for tool in &set.tools {
            let what = || format!("set {number}, {}: {set:#?}", tool.id);
            let name = format!("{}@{}", tool.id, tool.major);
            let info = host.tool(&name).unwrap();
            let told = told.iter().find(|one| one.contract.tool.major_id() == name);
            let told = told.unwrap();

            // The drivers that may serve it, and their outcomes, match the model.
            let expected = set.serving(tool);
            let expected: Vec<_> = expected
                .iter()
                .map(|one| (one.id.as_str(), one.publisher, set.outcome(tool, one)))
                .collect();
            let drivers = info.drivers.iter();
            let found: Vec<_> = drivers
                .map(|one| (&*one.id, &*one.publisher, outcome(&one.decision)))
                .collect();
            assert_eq!(found, expected, "{}", what());

            // Nothing is granted beyond the declarations and the rules.
            for one in &info.drivers {
                for (capability, writes) in granted(&one.decision) {
                    let may = set.may_have(tool, driver(&set, &one.id), &capability, writes);
                    assert!(may, "{capability} ({writes}) by {}: {}", one.id, what());
                }
            }

            // The explanations list the host's drivers, in the same order.
            let explained: Vec<_> = told
                .routes
                .iter()
                .map(|route| {
                    let one = route.explain(&policy, &machine);
                    let outcome = match one.outcome {
                        Explained::Allow => Outcome::Runs,
                        Explained::Ask => Outcome::Asks,
                        Explained::Deny => Outcome::Blocked,
                    };
                    (one.driver, one.driver_publisher, outcome)
                })
                .collect();
            let found: Vec<_> = found
                .iter()
                .map(|(id, publisher, outcome)| {
                    ((*id).to_owned(), (*publisher).to_owned(), *outcome)
                })
                .collect();
            assert_eq!(explained, found, "{}", what());
            let named = set.drivers.iter().filter(|one| {
                one.implements
                    .iter()
                    .any(|(implemented, _)| *implemented == tool.id)
            });
            assert_eq!(
                told.routes.len() + told.rejected.len(),
                named.count(),
                "{}",
                what()
            );

            // Calls behave in the same way, also towards a person.
            person.asked.lock().unwrap().clear();
            let request =
                Request::with_value(name.as_str(), json!({"do": "echo", "value": number}))
                    .approver(person.clone());
            let reply = host.call(request).await;
            let asked = std::mem::take(&mut *person.asked.lock().unwrap());
            let first = found
                .iter()
                .find(|(_, _, outcome)| *outcome != Outcome::Blocked);
            let approved = person.verdict == Verdict::Approved;
            match first {
                None => {
                    assert!(reply.result.is_err() && asked.is_empty(), "{}", what());
                    assert_eq!(reply.metadata.attempts, 0, "{}", what());
                }
                Some((id, publisher, outcome)) => {
                    let meta = &reply.metadata;
                    assert_eq!(meta.driver.as_deref(), Some(&**id), "{}", what());
                    assert_eq!(
                        meta.driver_publisher.as_deref(),
                        Some(&**publisher),
                        "{}",
                        what()
                    );
                    assert_eq!(
                        meta.publisher.as_deref(),
                        Some(tool.publisher),
                        "{}",
                        what()
                    );
                    let asks = *outcome == Outcome::Asks;
                    assert_eq!(asked.len(), usize::from(asks), "{}", what());
                    for one in &asked {
                        assert_eq!((&one.driver, &one.driver_publisher), (id, publisher));
                    }
                    let runs = !asks || approved;
                    assert_eq!(reply.result.is_ok(), runs, "{:?} {}", reply.result, what());
                    assert_eq!(meta.attempts > 0, runs, "{}", what());
                    seen.note(
                        "served by a foreign driver",
                        runs && publisher != tool.publisher,
                    );
                    seen.note("asked", asks);
                    seen.note(
                        "asked about a foreign driver",
                        asks && publisher != tool.publisher,
                    );
                }
            }
            let blocked = |why: &str| {
                info.drivers.iter().any(|one| match &one.decision {
                    Decision::Deny(denial) => denial.to_string().contains(why),
                    _ => false,
                })
            };
            seen.note(
                "blocked for a directory",
                blocked("its directory can't be used"),
            );
            seen.note("blocked for a deny", blocked("denied by"));
            seen.note("rejected", !told.rejected.is_empty());
            seen.note(
                "accepted unknown",
                found.iter().any(|(_, _, outcome)| {
                    *outcome != Outcome::Blocked
                        && tool.writes.iter().any(|one| one.starts_with("audit"))
                }),
            );
        }
    }
    seen.at_least(
        SETS / 100,
        &[
            "served by a foreign driver",
            "asked",
            "asked about a foreign driver",
            "blocked for a directory",
            "blocked for a deny",
            "rejected",
            "accepted unknown",
        ],
    );
}

/// The drivers of other publishers that may serve a tool, by tool.
fn foreign(tools: &[ToolRoutes<'_>]) -> Vec<(String, String)> {
    let routes = tools.iter().flat_map(|tool| &tool.routes);
    let open = routes.filter(|route| route.is_foreign() && route.is_open());
    open.map(|route| {
        let id = route.implementation.driver.id.to_string();
        (route.contract.tool.major_id(), id)
    })
    .collect()
}

#[test]
fn suggested_lines_give_what_they_name_and_bind_no_driver_that_was_not_named() {
    let bench = Bench::new();
    let mut random = Random::new(SEED + 1);
    let mut seen = Seen::default();
    for number in 0..SETS {
        let set = Set::new(&mut random);
        let policy = policy(&set, bench.directory.path());
        let machine = bench.builder(&set, &policy).machine().unwrap();
        let contents = bench.contents(&set);
        let before = told(&contents, &policy, &machine);
        let named = match random.chance(50) {
            true => Some(set.drivers[random.below(set.drivers.len())].id.clone()),
            false => None,
        };
        let lines = suggested(&before, named.as_deref(), &policy, &machine);
        let what = || format!("set {number}, for {named:?}: {set:#?}\n{lines}");
        let more = Policy::from_toml(&lines).unwrap_or_else(|error| panic!("{error}: {}", what()));
        for rule in more.grants() {
            let foreign = rule.publisher != rule.driver_publisher;
            assert!(!rule.preapproved, "{}", what());
            assert!(!foreign || rule.driver == named, "{}", what());
        }
        let policy_after = policy.clone().layer(more.clone()).unwrap();
        let builder = bench.builder(&set, &policy_after);
        let machine = builder.machine().unwrap();
        let host = builder.build().unwrap();
        let after = told(&contents, &policy_after, &machine);

        // No driver of another publisher serves, except the named one.
        let others = |pairs: Vec<(String, String)>| -> Vec<(String, String)> {
            let others = pairs.into_iter();
            others
                .filter(|(_, id)| Some(id) != named.as_ref())
                .collect()
        };
        assert_eq!(
            others(foreign(&after)),
            others(foreign(&before)),
            "{}",
            what()
        );
        seen.note("bound", foreign(&after).len() > foreign(&before).len());

        for (before, after) in before.iter().zip(&after) {
            let name = after.contract.tool.major_id();
            let info = host.tool(&name).unwrap();
            assert_eq!(info.drivers.len(), after.routes.len(), "{}", what());
            for (route, served) in after.routes.iter().zip(&info.drivers) {
                let id = route.implementation.driver.id.as_str();
                assert_eq!(&*served.id, id, "{}", what());
                assert_eq!(served.decision, route.decision, "{}", what());
                let mut earlier = before.routes.iter();
                let earlier = earlier.find(|one| one.implementation.driver.id.as_str() == id);
                if let Some(earlier) = earlier.filter(|one| one.is_open()) {
                    let sorted = |decision: &Decision| {
                        let mut all = granted(decision);
                        all.sort();
                        all.dedup();
                        all
                    };
                    let (was, is) = (&earlier.decision, &route.decision);
                    assert_eq!(sorted(was), sorted(is), "{}", what());
                    // A bound driver may have more effects; then a person is asked.
                    let stricter = named.is_some() && outcome(is) == Outcome::Asks;
                    assert!(outcome(was) == outcome(is) || stricter, "{}", what());
                    continue;
                }
                // Each new grant was named by a line, or by an existing rule.
                for (capability, writes) in granted(&route.decision) {
                    let wanted: toolward_contract::capability::Capability =
                        capability.parse().unwrap();
                    let given = policy_after.grants().any(|rule| {
                        let named = rule.driver.as_deref().is_none_or(|own| own == id);
                        rule.publisher.as_str() == route.contract.publisher
                            && rule.driver_publisher.as_str() == route.implementation.publisher
                            && named
                            && (rule.mutates.covers_one(&wanted)
                                || (!writes && rule.requires.covers_one(&wanted))
                                || rule
                                    .mutates
                                    .iter()
                                    .any(|one| one.to_string() == "external:mail"))
                    });
                    assert!(given, "{capability} of {name} by {id}: {}", what());
                }
                seen.note("opened", route.is_open());
            }
        }
        seen.note("nothing to say", lines.is_empty());
        let again = suggested(&after, named.as_deref(), &policy_after, &machine);
        let tables = again.lines().any(|line| line.starts_with("[["));
        assert!(!tables, "{again}\nafter {}", what());
    }
    seen.at_least(SETS / 100, &["bound", "opened", "nothing to say"]);
}

fn suggested(
    routes: &[ToolRoutes<'_>],
    driver: Option<&str>,
    policy: &Policy,
    machine: &Machine,
) -> String {
    let none = Choices::default();
    toolward_policy::suggest(routes, driver, false, policy, machine, &none).lines
}

/// Gives every secret a value, since a driver without its secret is not a candidate.
struct Valued;

impl toolward_host::secrets::SecretStore for Valued {
    fn get(
        &self,
        _: &str,
        _: &str,
        _: &str,
    ) -> Result<Option<toolward_host::secrets::SecretValue>, toolward_host::secrets::SecretError>
    {
        let value = b"0123456789abcdef".to_vec();
        Ok(Some(toolward_host::secrets::SecretValue::new(value)))
    }

    fn put(
        &self,
        _: &str,
        _: &str,
        _: &str,
        _: toolward_host::secrets::SecretValue,
    ) -> Result<(), toolward_host::secrets::SecretError> {
        Ok(())
    }
}
