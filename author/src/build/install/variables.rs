//! Which variables of the user's environment npm and pip get: settings of registries,
//! proxies and certificates, none that chooses what code runs or where packages go.

use std::ffi::OsStr;

/// How the names of settings begin, in upper case.
const BEGINNINGS: [&str; 5] = ["LC_", "NPM_", "PIP_", "SSL_CERT_", "XDG_"];

/// How the names of proxies end, and those of credentials that an `.npmrc` refers to.
const ENDS: [&str; 5] = ["_PROXY", "TOKEN", "AUTH", "PASSWORD", "USERNAME"];

const NAMES: [&str; 9] = [
    "CURL_CA_BUNDLE",
    "DBUS_SESSION_BUS_ADDRESS",
    "LANG",
    "LOGNAME",
    "NETRC",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "REQUESTS_CA_BUNDLE",
    "USER",
];

/// Settings of npm and pip that start another program, or install elsewhere.
const DROPPED: [&str; 11] = [
    "NPM_CONFIG_GIT",
    "NPM_CONFIG_GLOBAL",
    "NPM_CONFIG_LOCATION",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_SCRIPT_SHELL",
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
];

/// Whether npm and pip get this variable.
pub(super) fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    // npm takes its own in any case, and proxies are mostly in lower case.
    let name = name.to_ascii_uppercase();
    let kept = NAMES.contains(&name.as_str())
        || BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end));
    kept && !DROPPED.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_kept_and_what_chooses_code_is_not() {
        for kept in [
            "https_proxy",
            "HTTP_PROXY",
            "npm_config_registry",
            "NPM_TOKEN",
            "PIP_INDEX_URL",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
        ] {
            assert!(is_kept(kept.as_ref()), "{kept}");
        }
        for dropped in [
            "PATH",
            "PYTHONPATH",
            "PYTHONHOME",
            "NODE_OPTIONS",
            "NODE_PATH",
            "LD_PRELOAD",
            "BASH_ENV",
            "pip_target",
            "npm_config_script_shell",
        ] {
            assert!(!is_kept(dropped.as_ref()), "{dropped}");
        }
    }
}
