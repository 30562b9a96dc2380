//! The examples in the specifications of the formats.

use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::action::{Action, Reference};
use toolward_contract::driver::{BodyTemplate, DriverKind, Method};
use toolward_contract::driver::{Driver, TemplatePart};
use toolward_contract::index::{Index, Transport};
use toolward_contract::tool::{Approval, Backoff, CostClass, Tool};
use toolward_contract::{NoScope, SchemaScope, Scope, Severity};

const TOOL: &str = r#"---
name: Pricing Snapshot
id: pricing-snapshot
description: Fetch the current pricing tiers for a SaaS product from its public marketing pages and return a normalised tier list.
version: 1.0.0
idempotent: true
mutates: ["network:*"]
requires:
  network: ["*"]
approval: "auto"
risk_level: 0
cost_class: "metered"
timeout_ms: 20000
retry:
  max_attempts: 2
  backoff: "exponential"
  initial_ms: 500
inputs:
  type: object
  properties:
    productUrl:
      type: string
      format: uri
      description: Public marketing/pricing page URL.
  required: ["productUrl"]
outputs:
  type: object
  properties:
    tiers:
      type: array
      items:
        type: object
        properties:
          name: { type: string }
          priceUsdMo: { type: number, minimum: 0 }
          features: { type: array, items: { type: string } }
        required: [name, priceUsdMo]
    capturedAt: { type: string, format: date-time }
  required: [tiers, capturedAt]
driver_constraints:
  require_kind: ["http", "sdk"] # no shell-spawning CLI for scraping
default_implementation: apollo-pricing-http
tags: [finance, scraping, read-only]
examples:
  - name: Stripe billing page
    input: { productUrl: "https://stripe.com/pricing" }
    output:
      tiers:
        - { name: "Standard", priceUsdMo: 0, features: [pay-as-you-go] }
      capturedAt: "2026-04-28T20:00:00Z"
---
## Description
Use when the user asks for the current price of a SaaS product.
"#;

const DRIVER: &str = r#"---
name: Apollo pricing extraction (HTTP)
id: apollo-pricing-http
description: Apollo HTTP API for public-page price extraction.
version: 1.0.0
kind: http
auth:
  ref: ./SECRETS.md
  state: { env: ["APOLLO_API_KEY"] }
  expiry: { detect: "http_status:401" }
network:
  egress: ["api.apollo.io"]
implements:
  - tool: ./tools/pricing-snapshot/TOOL.md
    version: "^1.0.0"
    cost_override:
      cost_units_per_call: 5
    metadata:
      http:
        endpoint: "/v1/pricing/extract"
        method: POST
        body_template: { url: "${input.productUrl}" }
---
"#;

const INDEX: &str = r#"{
  "version": 1,
  "tools": [
    {
      "id": "mail.smtp_send",
      "description": "Send rendered drafts via the configured SMTP relay.",
      "transport": {
        "kind": "http",
        "method": "POST",
        "url": "https://api.mail.example/send"
      },
      "input_schema": {
        "$ref": "schema:mail.send.request.v1"
      },
      "result_schema": {
        "$ref": "schema:mail.send.result.v1"
      },
      "capabilities": ["net:api.mail.example"],
      "secrets": ["runloop/mail/smtp_api_key"],
      "requires_confirmation": true,
      "observability": {
        "tags": ["external", "mail"]
      }
    }
  ]
}"#;

#[test]
fn the_tool_of_aip_14_parses_with_its_contradiction_read_strictly() {
    let parsed = Tool::parse("TOOL.md", TOOL, &NoScope);
    let tool = parsed.value.expect("the example is valid");
    let [warning, cost] = parsed.diagnostics.as_slice() else {
        panic!("{:?}", parsed.diagnostics)
    };
    assert_eq!(cost.code, "cost-uncounted");
    assert_eq!(
        (warning.code, warning.severity),
        ("approval-auto-mutates", Severity::Warning)
    );
    assert_eq!((warning.line, warning.column), (10, 11));
    assert_eq!(tool.approval, Approval::OnMutate);
    assert_eq!(tool.major_id(), "pricing-snapshot@1");
    assert_eq!(tool.cost_class, CostClass::Metered);
    assert_eq!(tool.timeout.as_millis(), 20_000);
    assert_eq!(
        tool.retry.map(|retry| (retry.max_attempts, retry.backoff)),
        Some((2, Backoff::Exponential))
    );
    assert!(tool.idempotent);
    assert_eq!(tool.mutates.to_string(), "[network:*]");
    assert_eq!(tool.declaration().to_string(), "[network:*]");
    assert_eq!(
        tool.default_implementation.as_deref(),
        Some("apollo-pricing-http")
    );
    assert_eq!(tool.examples.len(), 1);
    assert!(tool.body.starts_with("## Description"));
    // A component runs in the host's process, as an `sdk` driver does.
    assert!(tool.driver_constraints.permits("component"));
    assert!(!tool.driver_constraints.permits("cli"));
}

#[test]
fn the_driver_of_aip_14_parses_and_serves_its_tool() {
    // The example has no `base_url`, and states how a login expires.
    let parsed = Driver::parse("DRIVER.md", DRIVER);
    let found: Vec<_> = parsed
        .diagnostics
        .iter()
        .map(|one| (one.code, one.line))
        .collect();
    assert_eq!(
        found,
        [
            ("http-format-old", 2),
            ("http-secret-unused", 9),
            ("driver-auth-unsupported", 10)
        ]
    );
    let mut driver = parsed.into_result().expect("the example is valid");
    let secrets: Vec<String> = driver.requires.secrets().collect();
    assert_eq!(secrets, ["APOLLO_API_KEY"]);
    let tool = Tool::parse("TOOL.md", TOOL, &NoScope)
        .value
        .expect("the example is valid");
    assert_eq!(driver.kind, DriverKind::Http);
    assert!(driver.resolve_paths(|_| Some(tool.id.clone())).is_empty());
    assert!(driver.check_against(&tool, "DRIVER.md").is_empty());
    let entry = driver
        .implements_tool("pricing-snapshot", &tool.version)
        .expect("it serves 1.0.0");
    assert_eq!(entry.cost_override.cost_units_per_call, Some(5.0));
    let call = entry.http.as_ref().expect("a request");
    assert_eq!(call.method, Method::Post);
    let Some(BodyTemplate::Object(members)) = &call.body else {
        panic!("{:?}", call.body)
    };
    let [(key, BodyTemplate::Text(template))] = members.as_slice() else {
        panic!("{members:?}")
    };
    let [TemplatePart::Value(slot)] = template.parts.as_slice() else {
        panic!("{template:?}")
    };
    assert_eq!(
        (key.as_str(), slot.path.as_slice()),
        ("url", ["productUrl".to_owned()].as_slice())
    );
    assert!(
        driver
            .implements_tool("pricing-snapshot", &semver::Version::new(2, 0, 0))
            .is_none()
    );
}

struct MailSchemas;

impl SchemaScope for MailSchemas {
    fn schema(&self, id: &str) -> Option<Value> {
        let known = ["mail.send.request.v1", "mail.send.result.v1"];
        known
            .contains(&id)
            .then(|| json!({ "type": "object", "required": ["id"] }))
    }
}

impl Scope for MailSchemas {
    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        None
    }
}

#[test]
fn the_index_of_runloop_parses_and_yields_a_contract() {
    let index = Index::parse("tools.json", INDEX.as_bytes(), &MailSchemas)
        .into_result()
        .expect("the example is valid");
    assert_eq!(index.version, 1);
    let [entry] = index.tools.as_slice() else {
        panic!("{:?}", index.tools)
    };
    assert!(matches!(&entry.transport, Transport::Http { method, .. } if method == "POST"));
    assert_eq!(entry.secrets, ["runloop/mail/smtp_api_key"]);
    let contracts = index.contracts();
    let [tool] = contracts.as_slice() else {
        panic!("{contracts:?}")
    };
    assert_eq!(tool.id.as_str(), "mail.smtp_send");
    assert_eq!(tool.approval, Approval::Always);
    assert_eq!(tool.mutates.to_string(), "[network:api.mail.example]");
    assert_eq!(
        tool.requires.secrets().collect::<Vec<_>>(),
        ["runloop/mail/smtp_api_key"]
    );
    assert_eq!(tool.tags, ["external", "mail"]);
    assert!(tool.inputs.validate(&json!({ "id": 1 })).is_ok());
    assert!(tool.inputs.validate(&json!({})).is_err());
}
