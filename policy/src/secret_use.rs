//! How a declarative driver's request sends a secret, and whether the `[[secret]]` lets it.

use std::fmt;

use serde::Serialize;
use toolward_contract::driver::{Method, Template};

use crate::evaluate::View;
use crate::grant::{SecretBinding, SecretPosition};

/// How the request of a contract's calls sends a secret.
pub(crate) struct SecretUse {
    /// The request's method.
    pub(crate) method: Method,
    /// Where the request has the secret; `None` where it leaves that to the policy.
    pub(crate) position: Option<SecretPosition>,
}

/// A `[[secret]]` that the driver's request can never use: each call would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct SecretMisfit {
    /// What the `[[secret]]` allows.
    pub allowed: String,
    /// What the driver's request does.
    pub sent: String,
}

impl fmt::Display for SecretMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its [[secret]] allows {}, and the driver's request sends it {}",
            self.allowed, self.sent
        )
    }
}

impl SecretUse {
    /// What of the request the `[[secret]]` does not allow.
    pub(crate) fn misfit(&self, binding: &SecretBinding) -> Option<SecretMisfit> {
        if let Some(position) = self
            .position
            .as_ref()
            .filter(|own| **own != binding.position)
        {
            return Some(SecretMisfit {
                allowed: format!("it {}", place(&binding.position)),
                sent: place(position),
            });
        }
        let method = self.method.as_str();
        (!binding.methods.iter().any(|own| own == method)).then(|| SecretMisfit {
            allowed: format!("`methods` {}", binding.methods.join(", ")),
            sent: format!("with {method}"),
        })
    }
}

fn place(position: &SecretPosition) -> String {
    match position {
        SecretPosition::Header(name) => format!("in the header `{name}`"),
        SecretPosition::Query(name) => format!("as the parameter `{name}`"),
    }
}

impl View<'_> {
    /// How the request for this contract sends a secret, if a declarative driver does.
    pub(crate) fn secret_use(&self, slug: &str) -> Option<SecretUse> {
        let tool = self.contract.tool;
        let driver = self.implementation.driver;
        let entry = driver.implements_tool(tool.id.as_str(), &tool.version)?;
        let http = entry.http.as_ref()?;
        http.secrets().contains(slug).then(|| {
            let holds =
                |(_, template): &&(String, Template)| template.secrets().any(|own| own == slug);
            let parameter = http.endpoint.query.iter().find(holds);
            let parameter = parameter.map(|(name, _)| SecretPosition::Query(name.clone()));
            let header = http.headers.iter().find(holds);
            let header = header.map(|(name, _)| SecretPosition::Header(name.clone()));
            SecretUse {
                method: http.method,
                position: parameter.or(header),
            }
        })
    }
}
