//! Request headers that a driver may not set. The host sets framing, routing and proxy headers: a
//! driver that sets them could smuggle a second request or impersonate another client.

/// Headers that the host sets, or that are never sent (RFC 9110 sections 7.6.1 and 7.6.3, RFC
/// 7239), or by which servers replace the checked method or path.
const FORBIDDEN: &str = "alt-used connection expect forwarded front-end-https host http2-settings keep-alive te trailer \
     transfer-encoding upgrade via x-host x-http-method x-http-method-override x-method-override \
     x-original-url x-real-ip x-rewrite-url";

const FORBIDDEN_PREFIXES: &[&str] = &["proxy-", "x-forwarded-", "x-original-host"];

/// Whether drivers must not set this header. `name` is in lower case.
///
/// ```
/// use toolward_contract::header::is_forbidden;
///
/// assert!(is_forbidden("connection") && is_forbidden("x_forwarded_for"));
/// assert!(!is_forbidden("accept"));
/// ```
pub fn is_forbidden(name: &str) -> bool {
    // Gateways pass `a_b` and `a-b` to their programs under the same name. So `a_b` is forbidden if
    // `a-b` is, or if `a-b` is a header with special rules.
    if name.contains('_') {
        let plain = name.replace('_', "-");
        let ours = ["content-length", "authorization", "cookie"];
        return forbidden(&plain) || ours.contains(&plain.as_str());
    }
    forbidden(name)
}

fn forbidden(name: &str) -> bool {
    let mut prefixes = FORBIDDEN_PREFIXES.iter();
    FORBIDDEN.split(' ').any(|one| one == name) || prefixes.any(|prefix| name.starts_with(prefix))
}

/// Whether this text may precede a secret in a header's value: no text, a scheme and a space (RFC
/// 9110, section 11.4), or, in a cookie, a name and `=`.
pub fn may_precede_secret(header: &str, text: &[u8]) -> bool {
    let Some((last, word)) = text.split_last() else {
        return true;
    };
    let end = if header == "cookie" { b'=' } else { b' ' };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    *last == end && (1..=64).contains(&word.len()) && word.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_or_a_cookies_name_may_precede_a_secret() {
        for (header, text, may) in [
            ("authorization", "", true),
            ("authorization", "Bearer ", true),
            ("authorization", "Token token=", false),
            ("authorization", "Bearer", false),
            ("x-key", "key=", false),
            ("cookie", "sid=", true),
            ("cookie", "a=b; sid=", false),
        ] {
            assert_eq!(
                may_precede_secret(header, text.as_bytes()),
                may,
                "{header}: {text}"
            );
        }
    }
}
