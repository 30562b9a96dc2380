//! Which tables a blocked tool lacks beside rules.

use toolward_contract::capability::{Backing, Capability, Class};
use toolward_contract::driver::Template;

use crate::denial::{Lack, Missing};
use crate::evaluate::View;
use crate::grant::SecretPosition;

/// The tables that are lacking for what is missing.
pub(super) fn lacks(view: &View<'_>, missing: &[Missing]) -> Vec<Lack> {
    let mut lacks = Vec::new();
    for one in missing.iter().filter(|one| one.why.lines_help()) {
        let asked = &one.capability;
        match asked.class().backing() {
            Some(Backing::Workspace) if view.workspace(asked).is_none() => {
                let directory = asked.path().map(|path| path.directory());
                let root = directory.and_then(|path| Capability::of(Class::Workspace, &path).ok());
                lacks.extend(root.map(Lack::Workspace));
            }
            Some(Backing::Secret)
                if !one.mutates && view.secret(asked, one.declared_by).is_none() =>
            {
                lacks.push(Lack::Secret {
                    slug: asked.scope(),
                    publisher: view.publisher_of(one.declared_by).to_owned(),
                    egress: egress(view),
                    position: position(view, &asked.scope()),
                });
            }
            Some(Backing::Service) if !view.has_service(asked) => {
                let declared = view.contract.tool.declaration();
                let other = |scope: &String| {
                    Capability::of(Class::Network, scope)
                        .is_ok_and(|host| !declared.covers_one(&host))
                };
                // Every service was asked for, and there is none.
                let name = match asked.is_wildcard() {
                    true => "choose".to_owned(),
                    false => asked.scope(),
                };
                let egress = egress(view).into_iter().filter(other).collect();
                lacks.push(Lack::Service { name, egress });
            }
            Some(Backing::Workspace | Backing::Secret | Backing::Service) | None => {}
        }
    }
    lacks
}

/// Where the driver's own request has a secret, if it is a declarative one.
fn position(view: &View<'_>, slug: &str) -> Option<SecretPosition> {
    let holds = |template: &Template| template.secrets().any(|own| own == slug);
    let implements = view.implementation.driver.implements.iter();
    implements
        .filter_map(|entry| entry.http.as_ref())
        .find_map(|http| {
            let mut query = http.endpoint.query.iter();
            let mut headers = http.headers.iter();
            let parameter = query.find(|(_, value)| holds(value));
            let header = headers.find(|(_, value)| holds(value));
            match (parameter, header) {
                (Some((name, _)), _) => Some(SecretPosition::Query(name.clone())),
                (None, Some((name, _))) => Some(SecretPosition::Header(name.clone())),
                (None, None) => None,
            }
        })
}

fn egress(view: &View<'_>) -> Vec<String> {
    let egress = view.implementation.driver.egress.iter();
    egress.map(Capability::scope).collect()
}
