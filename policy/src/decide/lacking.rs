//! Which tables a blocked tool lacks beside rules.

use toolward_contract::capability::{Backing, Capability, Class};

use crate::denial::{Lack, Missing};
use crate::evaluate::View;

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
                let sent = view.secret_use(&asked.scope());
                lacks.push(Lack::Secret {
                    slug: asked.scope(),
                    publisher: view.publisher_of(one.declared_by).to_owned(),
                    egress: egress(view),
                    method: sent.as_ref().map(|sent| sent.method.as_str()),
                    position: sent.and_then(|sent| sent.position),
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

fn egress(view: &View<'_>) -> Vec<String> {
    let egress = view.implementation.driver.egress.iter();
    egress.map(Capability::scope).collect()
}
