//! The lines that an operator would add to a policy: of one blocked tool, or
//! the fewest for a whole bundle. Only for people: an agent is never shown them.

mod lines;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use lines::SuggestedLines;

use crate::context::{ContextLack, Contexts};
use crate::decision::{Decision, DecisionContext};
use crate::implementation::Machine;
use crate::policy::Policy;
use crate::routing::{Rejection, ToolRoutes};

/// The fewest lines that let these tools run, when they are appended to the file
/// of `policy`; empty where nothing is missing. As narrow as the declarations: one
/// rule for each tool and major version. Approval stays what it is.
///
/// Without `driver` the lines are for drivers of each contract's own publisher,
/// and change nothing about others, whether the policy binds them or not. With it
/// they are for this one driver, and bind it where it is another publisher's. With
/// `preapproved` each `[[grant]]` of the lines has it.
/// `policy` and `machine` must be the ones used to make the routes. `choices` fills in what the
/// operator has chosen already.
#[must_use]
pub fn suggest<'r, 'a: 'r>(
    tools: impl IntoIterator<Item = &'r ToolRoutes<'a>>,
    driver: Option<&str>,
    preapproved: bool,
    policy: &Policy,
    machine: &Machine,
    choices: &Choices,
) -> ChosenLines {
    let taken = policy.tables.workspaces.iter();
    let taken = taken.map(|known| known.directory.clone()).collect();
    let mut lines = SuggestedLines::new(taken);
    lines.preapproved = preapproved;
    lines.choices = choices.clone();
    for tool in tools {
        for route in &tool.routes {
            let wanted = match driver {
                None => !route.is_foreign(),
                Some(id) => route.implementation.driver.id.as_str() == id,
            };
            if !wanted {
                continue;
            }
            if let Decision::Deny(denial) = &route.decision {
                lines.add(denial);
            }
            let contexts = Contexts::of(&route.contract, &route.implementation, policy);
            let lack = contexts.lack().map(ContextLack::lines_to_add);
            lines.contexts.extend(lack);
        }
        for rejected in &tool.rejected {
            let implementation = &rejected.implementation;
            if driver == Some(implementation.driver.id.as_str())
                && rejected.reasons == [Rejection::NotBound]
            {
                let request = DecisionContext {
                    machine: Some(machine),
                    ..DecisionContext::default()
                };
                let decision = crate::decide(&tool.contract, implementation, policy, &request);
                lines.bind(&tool.contract, implementation, &decision);
            }
        }
    }
    let mut narrower = lines.clone();
    let narrowed = narrower.narrow();
    ChosenLines {
        narrower: narrowed.then(|| narrower.write().lines),
        ..lines.write()
    }
}

/// The operator's choices for suggested lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// The directory of each workspace, by its path.
    pub workspaces: BTreeMap<String, String>,
    /// Where each secret comes from and goes, by its publisher and name. The publisher may be left out if no other
    /// one's secret of the name is in the lines.
    pub secrets: BTreeMap<(Option<String>, String), SecretChoice>,
    /// The hosts of the services, each with the service's name, which may be left out if the lines have one service.
    pub hosts: Vec<(Option<String>, String)>,
    /// Private addresses that the hosts of the grants may have.
    pub addresses: Vec<String>,
}

impl Choices {
    /// Reads `HOST` or `SERVICE=HOST`, and adds it.
    pub fn add_host(&mut self, text: &str) {
        let (service, host) = match text.split_once('=') {
            Some((service, host)) => (Some(service.to_owned()), host),
            None => (None, text),
        };
        self.hosts.push((service, host.to_owned()));
    }

    /// Adds the choice of a secret by `NAME` or `PUBLISHER:NAME`.
    pub fn add_secret(&mut self, name: &str, choice: SecretChoice) {
        let key = match name.rsplit_once(':') {
            Some((publisher, slug)) => (Some(publisher.to_owned()), slug.to_owned()),
            None => (None, name.to_owned()),
        };
        self.secrets.insert(key, choice);
    }
}

/// Where a secret comes from, and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretChoice {
    /// The key of `[[secret]]`: `env` or `file`.
    pub source: &'static str,
    /// The variable, or the path of the file.
    pub place: String,
    /// The origin that it may be sent to: `https://api.example.com`.
    pub origin: String,
}

impl SecretChoice {
    /// Reads `env:VARIABLE@https://HOST` or `file:PATH@https://HOST`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, origin) = text.rsplit_once("@https://")?;
        let (source, place) = from.split_once(':')?;
        let source = ["env", "file"].into_iter().find(|known| *known == source)?;
        (!place.is_empty() && !origin.is_empty()).then(|| Self {
            source,
            place: place.to_owned(),
            origin: format!("https://{origin}"),
        })
    }
}

/// A choice that no declaration makes and the operator has not made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenChoice {
    /// The directory of the workspace with this path.
    Workspace(String),
    /// Where a secret comes from and goes.
    Secret {
        /// Whose drivers use it.
        publisher: String,
        /// Its name.
        slug: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// The hosts of a service.
    Service {
        /// Its name.
        name: String,
        /// The hosts that the driver declares.
        egress: BTreeSet<String>,
    },
    /// Whole tables, of a program or a context, that the operator writes.
    Tables,
}

/// Suggested lines, with what is still to be chosen in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChosenLines {
    /// Tables to append.
    pub lines: String,
    /// The choices that the lines leave open: they hold a value that gives nothing there.
    pub open: Vec<OpenChoice>,
    /// Fewer lines, as an example: they give some of the hosts and workspaces only, with `partial`.
    pub narrower: Option<String>,
    /// What was chosen and is in no line.
    pub unused: Vec<String>,
    /// What was chosen for one of several secrets or services without the name of which, as sentences. It is in no line.
    pub ambiguous: Vec<String>,
}
