//! A strict parser for the authority of a URI: it accepts only forms that every resolver and server
//! reads in the same way.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::address;
use crate::error::{Denied, Rule};

/// ASCII characters that are not in DNS names. `_` is allowed, although host names of RFC 952
/// exclude it.
const NOT_IN_NAMES: AsciiDenyList = AsciiDenyList::new(true, " !\"#$%&'()*+,/:;<=>?@[\\]^`{|}~");

/// A host and an optional port. `Display` writes the normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port; `None` for the scheme's default.
    pub port: Option<u16>,
}

/// A host in normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: ASCII, lower case, without final dot.
    Name(String),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address that embeds no IPv4 address.
    V6(Ipv6Addr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::V4(address) => write!(f, "{address}"),
            Host::V6(address) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Reads `host[:port]` (RFC 3986 section 3.2). A name is converted to ASCII by UTS 46
/// (non-transitional, strict), which also folds its case. A final dot is dropped.
///
/// ```
/// use toolward_egress::Rule;
/// use toolward_egress::authority::{self, Authority, Host};
///
/// # fn main() -> Result<(), toolward_egress::Denied> {
/// let Authority { host, port } = authority::parse("API.example.:8443")?;
/// assert_eq!((host, port), (Host::Name("api.example".to_owned()), Some(8443)));
/// // Read as 8.8.8.8 by some, and as a name by others.
/// let denied = authority::parse("0x08080808").map_err(|denied| denied.rule);
/// assert_eq!(denied, Err(Rule::AddressForm));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The rule that the text breaks: [`Rule::Userinfo`], [`Rule::Host`], [`Rule::AddressForm`] or
/// [`Rule::Port`].
pub fn parse(text: &str) -> Result<Authority, Denied> {
    let denied = |rule| Denied::new(rule, text);
    if let Some((_, host)) = text.rsplit_once('@') {
        // The text before the `@` may be a password, so it is not reported.
        return Err(Denied::new(Rule::Userinfo, host));
    }
    if let Some(inner) = text.strip_prefix('[') {
        let (inner, rest) = inner.split_once(']').ok_or(denied(Rule::Host))?;
        let port = match rest.strip_prefix(':') {
            Some(digits) => Some(port(digits).ok_or(denied(Rule::Port))?),
            None if rest.is_empty() => None,
            None => return Err(denied(Rule::Host)),
        };
        // A zone (`%eth0`) is refused, since it has a meaning only on this machine.
        let address: Ipv6Addr = inner.parse().map_err(|_| denied(Rule::AddressForm))?;
        if address::embeds_v4(address) {
            return Err(denied(Rule::AddressForm));
        }
        let host = Host::V6(address);
        return Ok(Authority { host, port });
    }
    let (host, port) = match text.split_once(':') {
        Some((host, digits)) => (host, Some(port(digits).ok_or(denied(Rule::Port))?)),
        None => (text, None),
    };
    let host = name_or_v4(host).map_err(denied)?;
    Ok(Authority { host, port })
}

fn port(digits: &str) -> Option<u16> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

fn name_or_v4(text: &str) -> Result<Host, Rule> {
    // UTS 46 only folds the case of a name of letters, digits, hyphens and dots. Such names are
    // still passed to UTS 46, since they may have `xn--` labels.
    let name = Uts46::new()
        .to_ascii(
            text.as_bytes(),
            NOT_IN_NAMES,
            Hyphens::CheckFirstLast,
            DnsLength::VerifyAllowRootDot,
        )
        .map_err(|_| Rule::Host)?;
    let name = name.strip_suffix('.').unwrap_or(&name);
    if name.is_empty() {
        return Err(Rule::Host);
    }
    // `127.1`, `0x7f.1`, `2130706433` and similar texts are addresses for some resolvers and names
    // for others.
    let last = name.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if !numeric {
        return Ok(Host::Name(name.to_owned()));
    }
    // UTS 46 may have turned digits of other scripts into ASCII digits; such an address is refused.
    if !text.is_ascii() {
        return Err(Rule::AddressForm);
    }
    name.parse().map(Host::V4).map_err(|_| Rule::AddressForm)
}

/// Scheme, host and port (RFC 6454).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) https: bool,
    /// The host in normal form.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Origin {
    /// The port of a URL without a port.
    pub(crate) fn default_port(https: bool) -> u16 {
        if https { 443 } else { 80 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> Result<String, Rule> {
        parse(text)
            .map(|authority| authority.to_string())
            .map_err(|denied| denied.rule)
    }

    #[test]
    fn names_have_one_form() {
        for (text, expected) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("Example.Com:8443", "example.com:8443"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("faß.example", "xn--fa-hia.example"),
            ("example。com", "example.com"),
            ("r3---sn-a.example", "r3---sn-a.example"),
            ("_service.example", "_service.example"),
            ("localhost", "localhost"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("192.0.2.1.", "192.0.2.1"),
            ("[2001:DB8:0:0::1]:443", "[2001:db8::1]:443"),
        ] {
            assert_eq!(normal(text), Ok(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn other_readings_are_refused() {
        for (text, rule) in [
            ("", Rule::Host),
            (".", Rule::Host),
            ("..", Rule::Host),
            (":443", Rule::Host),
            ("a..b", Rule::Host),
            ("example.com..", Rule::Host),
            (".example.com", Rule::Host),
            ("-a.example", Rule::Host),
            ("a b.example", Rule::Host),
            ("a\t.example", Rule::Host),
            ("a\r\nb.example", Rule::Host),
            ("a\0.example", Rule::Host),
            ("example.com/", Rule::Host),
            ("example.com#", Rule::Host),
            ("example.com\\", Rule::Host),
            ("exa%6dple.com", Rule::Host),
            ("*.example.com", Rule::Host),
            ("xn--zzzzzz-.example", Rule::Host),
            ("user@example.com", Rule::Userinfo),
            ("user:word@example.com", Rule::Userinfo),
            ("@example.com", Rule::Userinfo),
            ("example.com:443@evil.example", Rule::Userinfo),
            ("example.com:", Rule::Port),
            ("example.com:0", Rule::Port),
            ("example.com:0443", Rule::Port),
            ("example.com:+443", Rule::Port),
            ("example.com:65536", Rule::Port),
            ("example.com:443:443", Rule::Port),
            ("::1", Rule::Port),
            ("2130706433", Rule::AddressForm),
            ("127.1", Rule::AddressForm),
            ("127.0.1", Rule::AddressForm),
            ("0177.0.0.1", Rule::AddressForm),
            ("0x7f.0.0.1", Rule::AddressForm),
            ("0x7f000001", Rule::AddressForm),
            ("127.0.0.0x1", Rule::AddressForm),
            ("127.0.0.256", Rule::AddressForm),
            ("127.0.0.01", Rule::AddressForm),
            ("1.2.3.4.5", Rule::AddressForm),
            ("example.1", Rule::AddressForm),
            ("１２７.0.0.1", Rule::AddressForm),
            ("①②⑦.0.0.1", Rule::AddressForm),
            ("127。0。0。1", Rule::AddressForm),
            ("[::1", Rule::Host),
            ("[::1]a", Rule::Host),
            ("[::1]:", Rule::Port),
            ("[]", Rule::AddressForm),
            ("[127.0.0.1]", Rule::AddressForm),
            ("[fe80::1%eth0]", Rule::AddressForm),
            ("[fe80::1%25eth0]", Rule::AddressForm),
            ("[::ffff:127.0.0.1]", Rule::AddressForm),
            ("[::ffff:7f00:1]", Rule::AddressForm),
            ("[::127.0.0.1]", Rule::AddressForm),
            ("[64:ff9b::7f00:1]", Rule::AddressForm),
            ("[2002:7f00:1::]", Rule::AddressForm),
            ("[v1.a]", Rule::AddressForm),
        ] {
            assert_eq!(normal(text), Err(rule), "{text}");
        }
        assert_eq!(
            normal(&format!("{}.example", "a".repeat(64))),
            Err(Rule::Host)
        );
        assert_eq!(normal(&"a.".repeat(200)), Err(Rule::Host));
    }
}
