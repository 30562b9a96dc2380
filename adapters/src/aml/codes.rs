//! The codes of findings in AML's tool definitions. The codes of YAML errors are in the contract
//! crate.

use toolward_support::report::{Code, codes};

codes! {
    pub(super) const Code;

    // Hard rules
    FIELD_MISSING = "aml-field-missing", "a definition has the required fields",
        "`spec_version`, `tool_id`, `version`, `status`, `meta.name`, `meta.description`, `meta.owner`, `type`, \
         `interface.input`, `interface.output` and `use_guidance`. Null and empty text count as missing.";
    TOOL_ID_INVALID = "aml-tool-id-invalid", "`tool_id` is 3 to 64 lower-case letters, digits, `_` and `-`",
        "Agents refer to the tool by this id. Once an agent does, the id must not change.";
    VERSION_INVALID = "aml-version-invalid", "`version` is a semantic version",
        "Write three numbers in quotes, `\"1.0.0\"`.";
    TYPE_UNKNOWN = "aml-type-unknown", "`type` is the tool's kind of behaviour",
        "`retrieval`, `action`, `function` or `human`. `transport.type` states how to call the tool.";
    TRANSPORT_UNKNOWN = "aml-transport-unknown", "`transport.type` is a protocol that AML knows",
        "`rest-api`, `lambda`, `mcp`, `message-queue`, `database` or `grpc`.";
    INPUT_INVALID = "aml-input-invalid", "`interface.input` is a JSON Schema",
        "The schema is an object at the top (`type: object`), without `$ref` and `$id`. Otherwise, the rules for \
         contracts of bundles apply: JSON Schema 2020-12, and patterns that need no backtracking.";
    OUTPUT_INVALID = "aml-output-invalid", "`interface.output` is a JSON Schema",
        "The schema is an object at the top (`type: object`), without `$ref` and `$id`. Otherwise, the rules for \
         contracts of bundles apply: JSON Schema 2020-12, and patterns that need no backtracking.";
    TRANSPORT_MISSING = "aml-transport-missing", "every tool except a function has a `transport`",
        "Write how the tool is called. If the platform computes the tool itself, its `type` is `function`.";
    CREDENTIALS_MISSING = "aml-credentials-missing", "a `transport` has `credentials`",
        "If the service needs no credentials, write the scheme `none`.";
    SCHEME_UNKNOWN = "aml-scheme-unknown", "`transport.credentials.scheme` is a scheme that AML knows",
        "`none`, `iam-role`, `api-key`, `bearer-token`, `oauth2` or `service-account`.";
    SOURCE_MISSING = "aml-source-missing", "a credential that is a secret has a source",
        "`api-key`, `bearer-token` and `service-account` need `transport.credentials.source`, such as `env`.";
    OAUTH2_INCOMPLETE = "aml-oauth2-incomplete", "`oauth2` has `provider` and `function_id`",
        "Both go into `transport.credentials`.";
    // Rules that only AML's field reference has
    FIELD_TYPE = "aml-field-type", "a field has the type that AML gives it",
        "Quote text that looks like something else.";
    VALUE_UNKNOWN = "aml-value-unknown", "a field of `transport` has one of the values that AML lists for it",
        "For example, the `provider` of a `lambda` is `aws`, `gcp` or `azure`. The message lists the values.";
    STATUS_UNKNOWN = "aml-status-unknown", "`status` is a state of AML",
        "`draft`, `active`, `deprecated` or `disabled`.";
    SPEC_VERSION_UNKNOWN = "aml-spec-version-unknown" Warning, "`spec_version` is the version of the rules that are checked here",
        "The rules are from version 1.2. A platform that approves another version may have other rules.";
    // Lints
    SIDE_EFFECTS_NONE = "aml-side-effects-none" Warning, "a tool of type `action` has side effects",
        "By its type, the tool changes something outside. Describe the change in `use_guidance.side_effects`, or make the tool a `retrieval`.";
    USE_UNGUIDED = "aml-use-unguided" Warning, "`use_guidance` describes when to use the tool, and when not",
        "`use_when` and `avoid_when` become part of an agent's instructions.";
    SIDE_EFFECTS_MISSING = "aml-side-effects-missing" Warning, "a tool of type `action` names its side effects",
        "Write into `use_guidance.side_effects` what a call changes.";
    REQUEST_INCOMPLETE = "aml-request-incomplete" Warning, "a `rest-api` transport has the address of its request",
        "`transport.base_url` is `https://` and a host. `transport.endpoint` is a method in capitals, a space and a \
         path: `GET /parcels/{number}`. `import` makes no driver without these fields.";
    TRANSPORT_INCOMPLETE = "aml-transport-incomplete" Warning, "a `transport` has the fields that AML requires",
        "`lambda`: `provider`, `function_id`, `invocation_type`. `mcp`: `url`, `tool_name`. `message-queue`: \
         `provider`, `queue_url`. `database`: `engine`, `query_method`. A secret has a `name` or `secret_id`. AML's \
         compiler accepts a definition without these fields, but no platform can call its tool.";
    NOT_IMPORTED = "aml-not-imported" Warning, "`import` makes a tool of the definition",
        "The definition is valid, but `toolward import aml` leaves it out for the reason in the message.";
    FIELD_UNKNOWN = "aml-field-unknown" Warning, "each field has a name that AML knows",
        "AML's compiler ignores other fields, and so does `import`.";
    DEPRECATED_UNDATED = "aml-deprecated-undated" Warning, "a deprecated tool has the date of its last change",
        "Add `meta.last_updated`, as in `\"2025-04-01\"`.";
}
