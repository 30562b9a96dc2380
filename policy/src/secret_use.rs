//! How a declarative driver's request sends a secret, and whether the `[[secret]]` allows that.

use toolward_contract::driver::{Method, Template, TemplatePart};
use toolward_contract::url_path;

use crate::denial::SecretMisfit;
use crate::evaluate::PolicyView;
use crate::grant::{SecretBinding, SecretPosition};

const HTTPS_PORT: u16 = 443;

/// How a declarative driver's request for a contract sends a secret.
pub(crate) struct SecretUse {
    /// The request's method.
    pub(crate) method: Method,
    /// The position of the secret in the request; `None` if the policy chooses it.
    pub(crate) position: Option<SecretPosition>,
    /// The host and port of the request.
    pub(crate) origin: Option<(String, u16)>,
    /// The segments of the request's path.
    pub(crate) path: Vec<Template>,
}

impl SecretUse {
    /// The part of the request that the `[[secret]]` does not allow.
    pub(crate) fn misfit(&self, binding: &SecretBinding) -> Option<SecretMisfit> {
        if let Some(position) = &self.position
            && *position != binding.position
        {
            return Some(SecretMisfit {
                allowed: format!("it {}", place(&binding.position)),
                sent: place(position),
            });
        }
        if let Some((host, port)) = &self.origin
            && (*host != binding.host || *port != binding.port)
        {
            return Some(SecretMisfit {
                allowed: format!("https://{}:{}", binding.host, binding.port),
                sent: format!("to https://{host}:{port}"),
            });
        }
        let prefix = binding.path_prefix.as_str();
        if !may_be_below(&self.path, prefix) {
            return Some(SecretMisfit {
                allowed: format!("paths below {prefix}"),
                sent: format!("to {}", written(&self.path)),
            });
        }
        let method = self.method.as_str();
        (!binding.methods.iter().any(|own| own == method)).then(|| SecretMisfit {
            allowed: format!("`methods` {}", binding.methods.join(", ")),
            sent: format!("with {method}"),
        })
    }
}

/// Whether some values of the placeholders produce a path below the prefix. The rule is the same as
/// for the path of a real request.
fn may_be_below(segments: &[Template], prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.is_empty() {
        return true;
    }
    if segments.iter().all(|segment| literal(segment).is_some()) {
        return url_path::is_below(&written(segments), prefix);
    }
    let literals = segments.iter().flat_map(|segment| &segment.parts);
    let hides =
        |part: &TemplatePart| matches!(part, TemplatePart::Literal(text) if url_path::hides(text));
    let mut above = prefix
        .strip_prefix('/')
        .unwrap_or(prefix)
        .split('/')
        .enumerate();
    let dots = |segment: &Template| literal(segment).is_some_and(url_path::is_dots);
    !literals.into_iter().any(hides)
        && !segments.iter().any(dots)
        && above.all(|(at, name)| {
            segments
                .get(at)
                .is_some_and(|segment| may_be(segment, name))
        })
}

/// Whether some values of a segment's placeholders produce this name.
fn may_be(segment: &Template, name: &str) -> bool {
    if let Some(text) = literal(segment) {
        return text == name;
    }
    let text = |part: Option<&TemplatePart>| match part {
        Some(TemplatePart::Literal(text)) => text.clone(),
        _ => String::new(),
    };
    let (first, last) = (text(segment.parts.first()), text(segment.parts.last()));
    let rest = name.strip_prefix(first.as_str());
    rest.is_some_and(|rest| rest.ends_with(last.as_str()))
}

/// The text of a segment without placeholders.
fn literal(segment: &Template) -> Option<&str> {
    match segment.parts.as_slice() {
        [] => Some(""),
        [TemplatePart::Literal(text)] => Some(text),
        _ => None,
    }
}

/// The path as text, with `…` for each placeholder.
fn written(segments: &[Template]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        for part in &segment.parts {
            match part {
                TemplatePart::Literal(text) => path.push_str(text),
                TemplatePart::Value(_) | TemplatePart::Secret(_) => path.push('…'),
            }
        }
    }
    path
}

fn place(position: &SecretPosition) -> String {
    match position {
        SecretPosition::Header(name) => format!("in the header `{name}`"),
        SecretPosition::Query(name) => format!("as the parameter `{name}`"),
    }
}

impl PolicyView<'_> {
    /// How the driver's request sends a secret; `None` if the driver is not declarative or its
    /// request does not send the secret.
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
            let origin = driver.origin();
            SecretUse {
                method: http.method,
                position: parameter.or(header),
                origin: origin.map(|host| (host.host(), host.port().unwrap_or(HTTPS_PORT))),
                path: http.endpoint.segments.clone(),
            }
        })
    }
}
