//! The differences of DRIVER.md of `kind: http` (AIP-31), in addition to the differences of every
//! driver.

use super::Specification::Http;
use super::{Difference, ONE_SPELLING, stricter, wider};

pub(super) const ROWS: &[Difference] = &[
    stricter(
        Http,
        &["*"],
        &["unknown-field"],
        "A driver that runs here may have only known fields.",
        "A misspelt field would silently do nothing. What another host needs belongs below `metadata`.",
        &[("/base_uri", r#""https://api.example""#)],
    ),
    stricter(
        Http,
        &["base_url"],
        &["http-base-url-invalid"],
        "A literal https URL of one host, without user, query, fragment and `..`; at most 1024 bytes.",
        "A call must not decide where requests go.",
        &[("/base_url", r#""http://api.example""#)],
    ),
    stricter(
        Http,
        &["", "network", "network.egress"],
        &["http-egress"],
        "`network.egress` holds the host of `base_url`.",
        "The hosts that a driver reaches are declared where operators look.",
        &[("/network", r#"{"egress":["other.example"]}"#)],
    ),
    stricter(
        Http,
        &["implements[]"],
        &["missing-field"],
        "Every entry has `metadata.http`.",
        "Without it, the driver would have no request to send.",
        &[("/implements/0/metadata", "{}")],
    ),
    stricter(
        Http,
        &["implements[].metadata.http.endpoint"],
        &["http-endpoint-invalid"],
        "A path that starts with one `/`, without scheme, host, fragment and `..`.",
        "The path stays below `base_url` with any input.",
        &[("/implements/0/metadata/http/endpoint", r#""prices""#)],
    ),
    stricter(
        Http,
        &["default_headers.*", "implements[].metadata.http.**"],
        &["http-template-invalid"],
        "Placeholders take values of `input`, `context` and `secrets`, with the filters `default` and `json`. Nothing else is evaluated.",
        "A placeholder's value can't change the form of the request.",
        &[("/default_headers", r#"{"x-a":"${env.HOME}"}"#)],
    ),
    stricter(
        Http,
        &[
            "default_headers.*",
            "implements[].metadata.http",
            "implements[].metadata.http.**",
        ],
        &["http-secret-position"],
        "A secret is the last part of one header, or the whole value of one parameter.",
        "Paths and bodies end up in logs. If a secret has two places, an author who removes one may overlook the other.",
        &[(
            "/implements/0/metadata/http",
            r#"{"endpoint":"/prices","body_template":{"key":"${secrets.API_KEY}"}}"#,
        )],
    ),
    stricter(
        Http,
        &[
            "default_headers.*",
            "implements[].metadata.http.headers.*",
            "implements[].metadata.http.idempotency_key_header",
        ],
        &["http-header-invalid"],
        "At most 32 headers, each once, with values in printable ASCII; no `Host`, length or hop-by-hop header.",
        "`Host`, lengths and hop-by-hop headers decide how a request is read.",
        &[("/default_headers", r#"{"Host":"other.example"}"#)],
    ),
    stricter(
        Http,
        &["implements[].metadata.http.query_template.*"],
        &["http-query-invalid"],
        "Names of parameters are literal, unique and not empty.",
        "Servers disagree about which of two values applies.",
        &[(
            "/implements/0/metadata/http",
            r#"{"endpoint":"/prices","method":"GET","query_template":{"":"x"}}"#,
        )],
    ),
    stricter(
        Http,
        &["implements[].metadata.http.body_template"],
        &["http-body-unexpected"],
        "No body with GET.",
        "Servers do not agree about the meaning of such a body (RFC 9110, section 9.3.1).",
        &[(
            "/implements/0/metadata/http",
            r#"{"endpoint":"/prices","method":"GET","body_template":{}}"#,
        )],
    ),
    stricter(
        Http,
        &["implements[].metadata.http.response_extract"],
        &["http-extract-invalid"],
        "At most 16 steps, one `[*]` and one filter; no `..`, no slices and no regular expressions.",
        "A response can't make the evaluation expensive.",
        &[(
            "/implements/0/metadata/http/response_extract",
            r#""$..price""#,
        )],
    ),
    stricter(
        Http,
        &["rate_limit.**"],
        &["wrong-value"],
        "Integers are written without a point.",
        ONE_SPELLING,
        &[("/rate_limit", r#"{"burst":1.0}"#)],
    ),
    stricter(
        Http,
        &[
            "implements[].metadata.component",
            "implements[].metadata.component.**",
        ],
        &["component-call-invalid"],
        "`metadata.component` goes with `kind: component`.",
        "With another kind, the field would have no effect.",
        &[("/implements/0/metadata/component", r#"{"world":"wit"}"#)],
    ),
    wider(
        Http,
        &["base_url"],
        (&["required"], &["http-format-old"]),
        "A driver without `base_url` sends its requests to the one host of `network.egress`.",
        "This form is of version 0.1. The next version of the host no longer reads it.",
        &[("/base_url", "@removed")],
    ),
    wider(
        Http,
        &["default_method", "implements[].metadata.http.method"],
        (&["enum"], &[]),
        "HEAD and OPTIONS are allowed, too.",
        "These methods only read.",
        &[("/implements/0/metadata/http/method", r#""HEAD""#)],
    ),
    wider(
        Http,
        &[
            "implements[].metadata.http.errors",
            "implements[].metadata.http.response",
            "implements[].metadata.http.retry_statuses",
            "implements[].metadata.http.timeout_ms",
        ],
        (&["additionalProperties"], &[]),
        "These fields are read.",
        "`errors` gives the meaning of statuses for the tool. `response` is of version 0.1. `retry_statuses` and `timeout_ms` are from AML, a format that `toolward import` reads.",
        &[
            (
                "/implements/0/metadata/http/errors",
                r#"{"404":{"code":"not_found"}}"#,
            ),
            ("/implements/0/metadata/http/retry_statuses", "[429,503]"),
            ("/implements/0/metadata/http/timeout_ms", "2000"),
        ],
    ),
    wider(
        Http,
        &["implements[].metadata.http.body_template"],
        (&["type"], &[]),
        "Any JSON value.",
        "Some services take a list.",
        &[(
            "/implements/0/metadata/http/body_template",
            r#"["${input.id}"]"#,
        )],
    ),
];
