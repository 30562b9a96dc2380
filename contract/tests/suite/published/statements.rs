//! The content of the published JSON Schemas of the specifications for front matter: names, types,
//! words and limits. The schemas themselves belong to others and are not in this repository.
//! Formats (`uri`) are left out, since JSON Schema 2020-12 does not check them by default.
//!
//! `PUBLISHED_SCHEMAS=DIR cargo test --test suite published` compares these statements with the
//! published files in `DIR`, if their digests match the ones below.

use serde_json::{Value, json};

use super::differences::Specification;
use super::rules::{Row, Rule, may, must};

/// A published schema.
pub(crate) struct Statement {
    pub(crate) specification: Specification,
    /// The published file, at commit dddee02 of agentproto/agentproto (9 August 2026). `AIP-NN` in
    /// the file's name is in lower case.
    pub(crate) file: &'static str,
    /// SHA-256 of that file.
    pub(crate) sha256: &'static str,
    pub(crate) fields: Rule,
}

impl Statement {
    /// The statement as a JSON Schema.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = self.fields.schema();
        if self.specification == Specification::Contract {
            // A tool that needs no approval may change nothing. A missing `approval` means `auto`.
            schema["if"] = json!({ "properties": { "approval": { "enum": ["auto"] } } });
            schema["then"] = json!({ "properties": { "mutates": { "maxItems": 0 } } });
        }
        schema
    }
}

pub(crate) const CONTRACT: Statement = Statement {
    specification: Specification::Contract,
    file: "aip-14-TOOL.schema.json",
    sha256: "1903a8013925933ec906f4d377418f459ae7074886c891e10049f4bfd7629e67",
    fields: Rule::Closed(CONTRACT_FIELDS),
};

pub(crate) const DRIVER: Statement = Statement {
    specification: Specification::Driver,
    file: "aip-30-DRIVER.schema.json",
    sha256: "2a11c4d9c5be272f2dc082431ec09f49b81187ae20ac7e22a14dde98845909db",
    fields: Rule::Open(DRIVER_FIELDS),
};

/// Applies in addition to [`DRIVER`].
pub(crate) const HTTP: Statement = Statement {
    specification: Specification::Http,
    file: "aip-31-HTTP.schema.json",
    sha256: "b2e9e4b2e7db5fcd111919eea83a1b3a379b889320d4ab361444aca1b0b1b24b",
    fields: Rule::Open(HTTP_FIELDS),
};

pub(crate) const ACTION: Statement = Statement {
    specification: Specification::Action,
    file: "aip-39-ACTION.schema.json",
    sha256: "c82a0f7e09739a439f28d7f3e2a4650cf4a693bf37d9483d0c56733c8fc1b671",
    fields: Rule::Closed(ACTION_FIELDS),
};

const VERSION: Rule = Rule::Shaped(
    r"^[0-9]+\.[0-9]+\.[0-9]+([+-][0-9A-Za-z_.-]+)?$",
    &["1.0.0", "2.10.3", "0.1.0-rc.1", "1.0.0+build.7"],
);
const NAME: Rule = Rule::Sized(1, 80, &["Look up a price", "A"]);
const DESCRIPTION: Rule = Rule::Sized(
    1,
    2000,
    &["Looks up the price of a product.", "Two\nlines."],
);
const CHANGES: Rule = Rule::List(&Rule::Shaped(
    r"^[a-z]+:\S+$",
    &[
        "network:api.example",
        "database:orders",
        "workspace:/out",
        "external:crm",
    ],
));
const APPROVAL: Rule = Rule::Shaped(
    "^(auto|on-mutate|always|policy:[0-9A-Za-z_./-]+)$",
    &["on-mutate", "always", "auto", "policy:teams/finance"],
);
const RISK: Rule = Rule::Whole(0, Some(3));
const HOSTS: Rule = Rule::List(&Rule::Text(&[
    "api.example",
    "*.example",
    "api.example:8443",
]));
const SECRETS: Rule = Rule::List(&Rule::Text(&["API_KEY", "shop/key"]));
const NEEDS: Rule = Rule::Closed(&[
    may("network", HOSTS),
    may("secrets", SECRETS),
    may(
        "tools",
        Rule::List(&Rule::Text(&["image.create", "text.stats"])),
    ),
]);
const FREE: Rule = Rule::Mapping(&["{}", r#"{"acme":{"team":"prices","since":2024}}"#]);
const COST_CLASS: Rule = Rule::Word(&["trivial", "metered", "expensive"]);
const BACKOFF: Rule = Rule::Word(&["fixed", "exponential"]);
const KINDS: Rule = Rule::Word(&["cli", "http", "mcp", "sdk", "builtin"]);
const LABEL: Rule = Rule::Shaped("^[0-9a-z][0-9a-z-]{0,63}$", &["finance", "read-only", "eu"]);
const LABELS: Rule = Rule::Set(&LABEL);

const SCHEMAS: Rule = Rule::Mapping(&[
    r#"{"type":"object"}"#,
    r#"{"type":"object","properties":{"id":{"type":"string"},"count":{"type":"integer"}}}"#,
]);

const CONTRACT_FIELDS: &[Row] = &[
    must("name", NAME),
    must(
        "id",
        Rule::SizedShape(
            2,
            80,
            "^[0-9a-z][0-9a-z.-]*[0-9a-z]$",
            &["price.read", "a1"],
        ),
    ),
    must("description", DESCRIPTION),
    must("version", VERSION),
    // The blocks of AIP-16, whose text is not in this repository, count as mappings.
    must("inputs", SCHEMAS),
    must("outputs", SCHEMAS),
    may("idempotent", Rule::Flag),
    may("mutates", CHANGES),
    may("requires", NEEDS),
    may("approval", APPROVAL),
    may("risk_level", RISK),
    may("cost_class", COST_CLASS),
    may("timeout_ms", Rule::Whole(1, None)),
    may(
        "retry",
        Rule::Closed(&[
            must("max_attempts", Rule::Whole(1, Some(20))),
            must("backoff", BACKOFF),
            may("initial_ms", Rule::Whole(0, None)),
        ]),
    ),
    may(
        "default_implementation",
        Rule::ShapedOrNull("^[0-9a-z][0-9a-z.-]{1,79}$", &["price-http"]),
    ),
    may(
        "driver_constraints",
        Rule::Closed(&[
            may("forbid", Rule::Set(&KINDS)),
            may("require_kind", Rule::Set(&KINDS)),
        ]),
    ),
    may(
        "tags",
        Rule::Set(&Rule::Shaped(
            "^[0-9a-z][0-9a-z-]*$",
            &["finance", "read-only"],
        )),
    ),
    may(
        "examples",
        Rule::List(&Rule::Closed(&[
            must("name", Rule::Text(&["first", "second", "third"])),
            must("input", Rule::Anything(&["{}"])),
            may("output", Rule::Anything(&["{}"])),
            may("note", Rule::Text(&["Why it is here."])),
        ])),
    ),
    may("metadata", FREE),
];

const DURATION: Rule = Rule::Shaped(r"^PT?\S+$", &["PT5M", "P1D"]);
const PROBE: Rule = Rule::Closed(&[
    must("method", Rule::Word(&["GET", "POST", "HEAD"])),
    must("url", Rule::Text(&["https://api.example/health"])),
    may("expect_status", Rule::Whole(100, Some(599))),
]);
const COST: Rule = Rule::Closed(&[
    may("cost_class", COST_CLASS),
    may("cost_units_per_call", Rule::Amount),
    may("currency", Rule::Shaped("^[A-Z]{3}$", &["EUR"])),
]);
const DRIVER_RETRY: Rule = Rule::Closed(&[
    must("max_attempts", Rule::Whole(1, Some(10))),
    may("backoff", BACKOFF),
    may("initial_ms", Rule::Whole(0, None)),
]);
const TIMEOUT: Rule = Rule::Whole(100, None);
const TOOL: Rule = Rule::Text(&["price.read", "./tools/price.read/TOOL.md", "stock.read"]);
const RANGE: Rule = Rule::Text(&["^1.0.0", ">=1.2.0 <2.0.0", "1.x || 2.x", "3.1.4"]);
const COMMAND: Rule = Rule::Text(&["acme --version"]);

const DRIVER_FIELDS: &[Row] = &[
    must("name", NAME),
    must(
        "id",
        Rule::Shaped("^[0-9a-z][0-9a-z.-]{1,79}$", &["price-cli", "a.b"]),
    ),
    must("description", DESCRIPTION),
    must("version", VERSION),
    must(
        "kind",
        Rule::Word(&["cli", "mcp", "sdk", "builtin", "http"]),
    ),
    must(
        "implements",
        Rule::NonEmpty(&Rule::Closed(&[
            must("tool", TOOL),
            must("version", RANGE),
            may(
                "schema_narrowing",
                Rule::Closed(&[
                    may("drop_inputs", Rule::List(&Rule::Text(&["count", "id"]))),
                    may("drop_outputs", Rule::List(&Rule::Text(&["id"]))),
                ]),
            ),
            may(
                "mapping",
                Rule::Each(&Rule::Either(&[
                    Rule::Text(&["id", "count"]),
                    Rule::Closed(&[
                        must("from", Rule::Text(&["id"])),
                        may("transform", Rule::Text(&["trim", "to_string"])),
                    ]),
                ])),
            ),
            may("cost_override", COST),
            may("timeout_override_ms", TIMEOUT),
            may("retry_override", DRIVER_RETRY),
            may("metadata", FREE),
        ])),
    ),
    may(
        "install",
        Rule::List(&Rule::Mapping(&[r#"{"brew":"acme"}"#])),
    ),
    may(
        "version_check",
        Rule::Closed(&[
            must("cmd", COMMAND),
            must("parse", Rule::Text(&["acme (.*)"])),
            must("range", Rule::Text(&[">=2"])),
            may("timeout_ms", TIMEOUT),
        ]),
    ),
    may(
        "auth",
        Rule::Closed(&[
            may("ref", Rule::Text(&["./SECRETS.md"])),
            may(
                "state",
                Rule::Closed(&[
                    may("paths", Rule::List(&Rule::Text(&["~/.config/acme"]))),
                    may("env", SECRETS),
                ]),
            ),
            may(
                "login",
                Rule::Closed(&[
                    may("cmd", COMMAND),
                    may("url", Rule::Text(&["https://login.example/"])),
                    may("interactive", Rule::Flag),
                    may("requires_callback_url", Rule::Flag),
                    may(
                        "completes_when",
                        Rule::Closed(&[
                            may("cmd", COMMAND),
                            may("exit_code", Rule::Whole(i64::MIN, None)),
                            may("http", PROBE),
                        ]),
                    ),
                ]),
            ),
            may(
                "refresh",
                Rule::Closed(&[
                    may("cmd", COMMAND),
                    may("url", Rule::Text(&["https://login.example/again"])),
                    may("every", DURATION),
                ]),
            ),
            may(
                "expiry",
                Rule::Closed(&[may(
                    "detect",
                    Rule::Text(&["http_status:401", "exit_code:4"]),
                )]),
            ),
        ]),
    ),
    may(
        "runner",
        Rule::Either(&[Rule::Text(&["./RUNNER.md"]), FREE]),
    ),
    may(
        "network",
        Rule::Closed(&[may("egress", HOSTS), may("ingress", HOSTS)]),
    ),
    may("region", Rule::List(&Rule::Text(&["global", "eu-west-1"]))),
    may("policy_tags", LABELS),
    may("cost_override", COST),
    may("timeout_override_ms", TIMEOUT),
    may("retry_override", DRIVER_RETRY),
    may(
        "health_check",
        Rule::Closed(&[
            must("method", Rule::Word(&["ping", "exec", "http", "noop"])),
            may("cmd", COMMAND),
            may("http", PROBE),
            may("expect_exit", Rule::Whole(i64::MIN, None)),
            may("every", DURATION),
            may("timeout_ms", TIMEOUT),
        ]),
    ),
    may(
        "requires",
        Rule::Closed(&[
            may(
                "os",
                Rule::List(&Rule::Word(&["darwin", "linux", "windows"])),
            ),
            may(
                "arch",
                Rule::List(&Rule::Word(&["x64", "arm64", "x86", "arm"])),
            ),
            may("min_disk_mb", Rule::Whole(0, None)),
            may("min_memory_mb", Rule::Whole(0, None)),
        ]),
    ),
    may(
        "examples",
        Rule::List(&Rule::Open(&[
            must("goal", Rule::Text(&["look up one price"])),
            may("note", Rule::Text(&["The usual case."])),
            may("cmd", COMMAND),
        ])),
    ),
    may("tags", LABELS),
    may("metadata", FREE),
];

const VERBS: Rule = Rule::Word(&["GET", "POST", "PUT", "PATCH", "DELETE"]);
const TRANSPORT: Rule = Rule::Word(&["sse", "ndjson", "chunked"]);
const EVENT_FIELD: Row = may("event_field", Rule::Text(&["data"]));
const TERMINATOR: Row = may("terminator", Rule::Text(&["[DONE]"]));
const HEADERS: Rule = Rule::Each(&Rule::Text(&[
    "application/json",
    "Bearer ${secrets.API_KEY}",
    "v2",
]));

const HTTP_FIELDS: &[Row] = &[
    must("kind", Rule::Word(&["http"])),
    must(
        "base_url",
        Rule::Text(&["https://api.example", "https://api.example/v2"]),
    ),
    may("default_headers", HEADERS),
    may("default_method", VERBS),
    may(
        "streaming",
        Rule::Closed(&[must("transport", TRANSPORT), EVENT_FIELD, TERMINATOR]),
    ),
    may(
        "rate_limit",
        Rule::Closed(&[
            may("requests_per_minute", Rule::Whole(1, None)),
            may("burst", Rule::Whole(1, None)),
        ]),
    ),
    may(
        "implements",
        Rule::List(&Rule::Open(&[
            must(
                "tool",
                Rule::Anything(&[r#""price.read""#, r#""./tools/price.read/TOOL.md""#]),
            ),
            must(
                "version",
                Rule::Anything(&[r#""^1.0.0""#, r#""1.x || 2.x""#]),
            ),
            may(
                "metadata",
                Rule::Open(&[may(
                    "http",
                    Rule::Closed(&[
                        must("endpoint", Rule::Text(&["/prices/${input.id}", "/prices"])),
                        may("method", VERBS),
                        may("headers", HEADERS),
                        may(
                            "body_template",
                            Rule::Mapping(&[r#"{"id":"${input.id}","fixed":1}"#]),
                        ),
                        may(
                            "query_template",
                            Rule::Each(&Rule::Text(&["${input.count}", "en"])),
                        ),
                        may(
                            "response_extract",
                            Rule::Text(&["$.data", "$", "$.items[0].price"]),
                        ),
                        may(
                            "streaming",
                            Rule::Closed(&[may("transport", TRANSPORT), EVENT_FIELD, TERMINATOR]),
                        ),
                        may("idempotency_key_header", Rule::Text(&["Idempotency-Key"])),
                    ]),
                )]),
            ),
        ])),
    ),
];

const SAID: Rule = Rule::Sized(1, usize::MAX, &["Commits what is pending."]);

const ACTION_FIELDS: &[Row] = &[
    must("schema", Rule::Word(&["action/v1"])),
    must(
        "id",
        Rule::SizedShape(
            2,
            80,
            "^[0-9a-z][0-9a-z.-]*(:[0-9a-z][0-9a-z.-]*)?$",
            &["storage:commit", "commit", "v.c.s:a-b"],
        ),
    ),
    must("description", DESCRIPTION),
    may("version", VERSION),
    may("category", Rule::Text(&["filesystem", ""])),
    may("verb", Rule::Text(&["commit"])),
    may("target_kind", Rule::Text(&["storage"])),
    may("mutates", CHANGES),
    may("requires", NEEDS),
    may("approval", APPROVAL),
    may("risk_level", RISK),
    may(
        "fires_events",
        Rule::List(&Rule::Sized(1, usize::MAX, &["storage.committed"])),
    ),
    may(
        "implementations",
        Rule::List(&Rule::Closed(&[
            must("kind", Rule::Word(&["tool", "driver", "ui", "lifecycle"])),
            must("ref", Rule::Sized(1, usize::MAX, &["storage.commit"])),
        ])),
    ),
    may(
        "tags",
        Rule::List(&Rule::Text(&["storage", "Anything goes"])),
    ),
    may(
        "examples",
        Rule::List(&Rule::Closed(&[
            must("name", SAID),
            must("scenario", SAID),
            may("note", Rule::Text(&["A note."])),
        ])),
    ),
    may("metadata", FREE),
];
