//! The token servers and download hosts of the best-known public registries, by which these need no setting.
//!
//! Exact hosts, as the registries' operators publish them for firewalls. Whoever adds a row lets the credentials for
//! that registry go to its realm; to a download host none ever go.

/// What is known of one registry.
struct Known {
    /// `host[:port]`.
    registry: &'static str,
    /// The origin of its token server, if that is not its own.
    realm: Option<&'static str>,
    /// Origins that it redirects downloads to.
    redirects: &'static [&'static str],
}

const KNOWN: &[Known] = &[
    Known {
        registry: "registry-1.docker.io",
        realm: Some("https://auth.docker.io"),
        redirects: &[
            "https://production.cloudflare.docker.com",
            "https://production.cloudfront.docker.com",
            "https://docker-images-prod.6aa30f8b08e16409b46e0173d6de2f56.r2.cloudflarestorage.com",
        ],
    },
    Known {
        registry: "ghcr.io",
        realm: None,
        redirects: &["https://pkg-containers.githubusercontent.com"],
    },
    Known {
        registry: "quay.io",
        realm: None,
        redirects: &[
            "https://cdn.quay.io",
            "https://cdn01.quay.io",
            "https://cdn02.quay.io",
            "https://cdn03.quay.io",
            "https://cdn04.quay.io",
            "https://cdn05.quay.io",
            "https://cdn06.quay.io",
        ],
    },
    Known {
        registry: "registry.gitlab.com",
        realm: Some("https://gitlab.com"),
        redirects: &["https://cdn.registry.gitlab-static.net"],
    },
];

fn of(registry: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.registry == registry)
}

/// Whether this is the token server of that registry.
pub(crate) fn is_realm(registry: &str, origin: &str) -> bool {
    of(registry).is_some_and(|known| known.realm == Some(origin))
}

/// Whether the registry at `own`, an origin, redirects downloads to `origin`.
pub(crate) fn is_redirect(own: &str, origin: &str) -> bool {
    let registry = own.strip_prefix("https://");
    let known = registry.and_then(of);
    known.is_some_and(|known| known.redirects.contains(&origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_pair_is_exact_and_https() {
        assert!(is_realm("registry-1.docker.io", "https://auth.docker.io"));
        assert!(is_redirect(
            "https://ghcr.io",
            "https://pkg-containers.githubusercontent.com"
        ));
        for (registry, origin) in [
            ("registry-1.docker.io", "http://auth.docker.io"),
            ("registry-1.docker.io", "https://auth.docker.io:444"),
            ("registry-1.docker.io", "https://x.auth.docker.io"),
            ("ghcr.io", "https://auth.docker.io"),
            ("registry-1.docker.io:5000", "https://auth.docker.io"),
            ("", ""),
        ] {
            assert!(!is_realm(registry, origin), "{registry} {origin}");
        }
        let host = "https://pkg-containers.githubusercontent.com";
        for own in [
            "http://ghcr.io",
            "https://ghcr.io:444",
            "https://x.ghcr.io",
            "",
        ] {
            assert!(!is_redirect(own, host), "{own}");
        }
        assert!(!is_redirect("https://ghcr.io", "https://cdn.quay.io"));
    }

    #[test]
    fn every_row_is_an_origin_with_https_and_no_port() {
        for known in KNOWN {
            for origin in known.realm.iter().chain(known.redirects) {
                let url = url::Url::parse(origin).unwrap();
                assert_eq!(crate::address::origin(&url), *origin);
                assert!(url.scheme() == "https" && url.port().is_none(), "{origin}");
            }
        }
    }
}
