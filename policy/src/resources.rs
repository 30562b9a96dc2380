//! The tables for the resources of tools: workspaces, secrets, services, shared buckets. Also reads
//! the names in these tables and in rules.

use std::path::PathBuf;
use std::sync::Arc;

use toolward_contract::capability::{HostPattern, PathPattern};
use toolward_contract::header;
use toolward_support::report::Code;

use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::fields::{Fields, each, finish, flag, number, optional, own, required, texts};
use crate::grant::{SecretBinding, SecretPosition};
use crate::name::Publisher;
use crate::toml_text::{PLACEHOLDER_DIRECTORY, PLACEHOLDER_HOST, PLACEHOLDER_VARIABLE};

/// `[[workspace]]`: the host directory behind a contract's path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The virtual path, without wildcards.
    pub path: PathPattern,
    /// The host directory. Absolute.
    pub directory: PathBuf,
    /// Whether the directory may overlap the directory of another workspace, which must also be
    /// shared.
    pub shared: bool,
    /// The most bytes that one call may add; `None` for the host's limit.
    pub max_bytes: Option<u64>,
    /// The most files and directories that one call may create; `None` for the host's limit.
    pub max_files: Option<u64>,
}

impl Workspace {
    /// A workspace that is not shared and has the host's limits.
    pub fn new(path: PathPattern, directory: impl Into<PathBuf>) -> Self {
        Self {
            path,
            directory: directory.into(),
            shared: false,
            max_bytes: None,
            max_files: None,
        }
    }

    /// Whether the directory is a placeholder that the operator must replace.
    pub fn is_placeholder(&self) -> bool {
        self.directory.starts_with(PLACEHOLDER_DIRECTORY)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let path = required(fields, "path", |text| {
            PathPattern::parse(text).map_err(|message| error::WORKSPACE.error(message))
        })?;
        let directory = required(fields, "directory", |text| {
            // Such a text would be read as the name of a directory next to the policy's file.
            if text.starts_with('~') || text.contains('$') {
                return Err(error::WORKSPACE
                    .expected("a directory", text)
                    .hinted("write the whole path; `~` and variables stand for nothing here"));
            }
            Ok(text)
        })?;
        Ok(Self {
            path,
            directory: directory.into(),
            shared: flag(fields, "shared")?,
            max_bytes: number(fields, "max_bytes")?,
            max_files: number(fields, "max_files")?,
        })
    }
}

/// The source of a secret's value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SecretSource {
    /// An environment variable of the host.
    Env(String),
    /// A file. A relative path starts at the directory of the policy's file.
    File(String),
    /// The publisher's store, where tools with `mutates: secret:…` put it.
    #[default]
    Store,
}

/// `[[secret]]`: a secret's value, the publisher whose tools may use it, and where it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name, as contracts declare it.
    pub slug: String,
    /// The publisher whose tools may use it.
    pub publisher: Publisher,
    /// The source of the value.
    pub source: SecretSource,
    /// Where the secret is sent: the host replaces its placeholder by the value there. `None` if it
    /// is sent nowhere, so that it can only be revealed.
    pub binding: Option<Arc<SecretBinding>>,
}

impl Secret {
    /// A secret in the publisher's store that is sent nowhere.
    pub fn new(slug: impl Into<String>, publisher: Publisher) -> Self {
        Self {
            slug: slug.into(),
            publisher,
            source: SecretSource::Store,
            binding: None,
        }
    }

    /// Whether the operator must still choose the source of its value or where it is sent. Until
    /// then it is not granted.
    pub fn is_placeholder(&self) -> bool {
        let variable =
            matches!(&self.source, SecretSource::Env(name) if name == PLACEHOLDER_VARIABLE);
        let host = |binding: &Arc<SecretBinding>| binding.host == PLACEHOLDER_HOST;
        variable || self.binding.as_ref().is_some_and(host)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let slug = required(fields, "slug", own)?;
        let publisher = required(fields, "publisher", Publisher::parse)?;
        let env = optional(fields, "env", |name| Ok(SecretSource::Env(name.to_owned())))?;
        let file = optional(fields, "file", |name| {
            Ok(SecretSource::File(name.to_owned()))
        })?;
        if env.is_some() && file.is_some() {
            return Err(error::SECRET
                .error("expected `env` or `file`, found both")
                .hinted("say where the value comes from once"));
        }
        let origin = optional(fields, "origin", |text| read_origin(text).map(|_| text))?;
        let header = optional(fields, "header", |text| {
            read_header(text).map(SecretPosition::Header)
        })?;
        let query = optional(fields, "query", |text| {
            read_parameter(text).map(SecretPosition::Query)
        })?;
        let methods: Option<Vec<String>> = each(fields, "methods", read_method)?;
        let prefix = optional(fields, "path_prefix", read_path_prefix)?;
        finish(fields)?;
        if header.is_some() && query.is_some() {
            return Err(error::SECRET
                .error("expected `header` or `query`, found both")
                .hinted("a secret goes out in one place"));
        }
        let binding = match (origin, header.or(query)) {
            (None, None) if methods.is_none() && prefix.is_none() => None,
            (Some(origin), Some(position)) => {
                let methods = methods.unwrap_or_else(|| vec!["GET".to_owned(), "HEAD".to_owned()]);
                let prefix = prefix.as_deref().unwrap_or("/");
                let binding = SecretBinding::new(origin, &position, &methods, prefix)?;
                Some(Arc::new(binding))
            }
            _ => {
                return Err(error::SECRET
                    .error(
                        "expected `origin` with `header` or `query`, found one without the other, or \
                     `methods` or `path_prefix` without them",
                    )
                    .hinted("leave all of them out for a secret that is only revealed"));
            }
        };
        Ok(Self {
            slug,
            publisher,
            source: env.or(file).unwrap_or_default(),
            binding,
        })
    }
}

/// `[[service]]`: the hosts behind `mutates: external:…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRule {
    /// Its name, as contracts declare it.
    pub name: String,
    /// The hosts. If empty, the service reaches nothing.
    pub hosts: Vec<HostPattern>,
}

impl ServiceRule {
    /// Whether the operator must still choose its hosts. Until then it is not granted.
    pub fn is_placeholder(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| host.host() == PLACEHOLDER_HOST)
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let name = required(fields, "name", own)?;
        let host =
            |text: &str| HostPattern::parse(text).map_err(|message| error::HOST.error(message));
        let hosts = texts(&fields.required("hosts")?, host)?;
        Ok(Self { name, hosts })
    }
}

/// `[[share]]`: a bucket of one publisher that the tools of another publisher open under the same
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The bucket's name.
    pub database: String,
    /// The publisher that owns the bucket.
    pub from: Publisher,
    /// The publisher whose tools may open it, if a grant gives them the bucket.
    pub to: Publisher,
}

impl Share {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        Ok(Self {
            database: required(fields, "database", own)?,
            from: required(fields, "from", Publisher::parse)?,
            to: required(fields, "to", Publisher::parse)?,
        })
    }
}

/// The most bytes of a header's name, a parameter's name, a method, and a path prefix.
const MAX_HEADER_BYTES: usize = 64;
const MAX_PARAMETER_BYTES: usize = 64;
const MAX_METHOD_BYTES: usize = 16;
const MAX_PATH_BYTES: usize = 1024;

impl SecretBinding {
    /// Reads the parts of `[[secret]]` that name where the secret is sent: an
    /// `https://host[:port]`, a header or parameter, methods (at least one) and the prefix of the
    /// path.
    ///
    /// # Errors
    /// If the origin has another scheme, a user, a path or a wildcard; the header frames or routes
    /// a request; the parameter would be sent with escapes; no method is given; or the path is not
    /// plain.
    pub fn new(
        origin: &str,
        position: &SecretPosition,
        methods: &[impl AsRef<str>],
        path_prefix: &str,
    ) -> Result<Self, PolicyError> {
        let position = match position {
            SecretPosition::Header(name) => SecretPosition::Header(read_header(name)?),
            SecretPosition::Query(name) => SecretPosition::Query(read_parameter(name)?),
        };
        let (host, port) = read_origin(origin)?;
        if methods.is_empty() {
            return Err(error::METHOD
                .error("expected at least one method, found none")
                .hinted("leave `methods` out for GET and HEAD"));
        }
        let methods = methods.iter().map(|method| read_method(method.as_ref()));
        Ok(Self {
            host,
            port,
            position,
            methods: methods.collect::<Result<_, _>>()?,
            path_prefix: read_path_prefix(path_prefix)?,
        })
    }

    /// Checks that a binding that was built in code meets the rules of [`SecretBinding::new`].
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let origin = format!("https://{}:{}", self.host, self.port);
        if Self::new(&origin, &self.position, &self.methods, &self.path_prefix)? == *self {
            return Ok(());
        }
        Err(error::ORIGIN
            .error("expected a binding with its host and header in lower case")
            .hinted("make it with SecretBinding::new"))
    }
}

/// `https://host[:port]`: host and port.
pub(crate) fn read_origin(text: &str) -> Result<(String, u16), PolicyError> {
    let refused = |message: String| {
        error::ORIGIN
            .error(message)
            .hinted("write https://host or https://host:port")
    };
    let Some(authority) = text.strip_prefix("https://") else {
        return Err(refused(format!(
            "expected an origin that starts with https://, found {}",
            quoted(text)
        )));
    };
    let host = HostPattern::parse(authority).map_err(refused)?;
    if !host.is_literal() {
        return Err(refused(format!(
            "expected an origin with one host, found {}",
            quoted(text)
        )));
    }
    Ok((host.host(), host.port().unwrap_or(443)))
}

/// The name of a header in which a secret may be sent, in lower case.
pub(crate) fn read_header(text: &str) -> Result<String, PolicyError> {
    // RFC 9110, section 5.6.2: token.
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let name = text.to_ascii_lowercase();
    if name.is_empty() || name.len() > MAX_HEADER_BYTES || !name.bytes().all(token) {
        return Err(error::HEADER.expected("the name of a header", text));
    }
    // The host sets these headers or never sends them, so no request carries a secret there.
    if header::is_forbidden(&name) || name == "content-length" {
        return Err(error::HEADER
            .error(format!(
                "expected a header that a request carries to its end, found {name}"
            ))
            .hinted("a secret goes out in a header such as authorization or x-api-key"));
    }
    Ok(name)
}

/// The name of a parameter that may hold a secret: it must have only one spelling (RFC 3986,
/// section 2.3).
pub(crate) fn read_parameter(text: &str) -> Result<String, PolicyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if (1..=MAX_PARAMETER_BYTES).contains(&text.len()) && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(error::PARAMETER
        .expected(
            "the name of a parameter, of letters, digits, `-`, `.`, `_` and `~`",
            text,
        )
        .hinted("write for example `query = \"key\"`"))
}

/// A method in upper case.
pub(crate) fn read_method(text: &str) -> Result<String, PolicyError> {
    let plain = (1..=MAX_METHOD_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase());
    // These methods create a tunnel, or echo the request with its secret.
    let refused = matches!(text, "CONNECT" | "TRACE");
    if plain && !refused {
        return Ok(text.to_owned());
    }
    Err(error::METHOD.expected("a method such as GET or POST in upper case", text))
}

/// The prefix of a request's path.
pub(crate) fn read_path_prefix(text: &str) -> Result<String, PolicyError> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"%?#\\\"<>^`{|}*".contains(&byte);
    let inner: Vec<&str> = text.split('/').skip(1).collect();
    let segment = |(at, segment): (usize, &&str)| {
        !matches!(*segment, "." | "..") && (!segment.is_empty() || at + 1 == inner.len())
    };
    let good = text.starts_with('/')
        && text.len() <= MAX_PATH_BYTES
        && text.bytes().all(plain)
        && inner.iter().enumerate().all(segment);
    if good {
        return Ok(text.to_owned());
    }
    Err(error::PATH
        .expected(
            "an absolute URL path without `.`, `..`, escapes and query",
            text,
        )
        .hinted("write for example \"/repos/\""))
}

/// Checks that a text can name a file. The host checks whether the file exists.
pub(crate) fn check_file_name(key: &str, name: &str) -> Result<(), PolicyError> {
    if !name.is_empty() && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(error::WRONG_VALUE.expected(format_args!("`{key}` to name a file"), name))
}

/// Checks that a text can name an environment variable of the host.
pub(crate) fn check_variable(code: &Code, what: &str, name: &str) -> Result<(), PolicyError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(());
    }
    Err(code.expected(format_args!("`env` to name {what}"), name))
}
