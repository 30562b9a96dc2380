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
        "Agents refer to the tool by it, and it never changes once one does.";
    VERSION_INVALID = "aml-version-invalid", "`version` is a semantic version",
        "Write three numbers in quotes, `\"1.0.0\"`.";
    TYPE_UNKNOWN = "aml-type-unknown", "`type` is the tool's kind of behaviour",
        "`retrieval`, `action`, `function` or `human`. How to call it is in `transport.type`.";
    TRANSPORT_UNKNOWN = "aml-transport-unknown", "`transport.type` is a protocol that AML knows",
        "`rest-api`, `lambda`, `mcp`, `message-queue`, `database` or `grpc`.";
    INPUT_INVALID = "aml-input-invalid", "`interface.input` is a JSON Schema",
        "An object at the top (`type: object`), written out: no `$ref` and no `$id`. Otherwise as the contracts of \
         bundles have it: JSON Schema 2020-12, patterns that need no backtracking.";
    OUTPUT_INVALID = "aml-output-invalid", "`interface.output` is a JSON Schema",
        "An object at the top (`type: object`), written out: no `$ref` and no `$id`. Otherwise as the contracts of \
         bundles have it: JSON Schema 2020-12, patterns that need no backtracking.";
    TRANSPORT_MISSING = "aml-transport-missing", "every tool but a function has a `transport`",
        "Say how the tool is called. Where the platform computes it itself, its `type` is `function`.";
    CREDENTIALS_MISSING = "aml-credentials-missing", "a `transport` has `credentials`",
        "A service that wants none has the scheme `none`.";
    SCHEME_UNKNOWN = "aml-scheme-unknown", "`transport.credentials.scheme` is a scheme that AML knows",
        "`none`, `iam-role`, `api-key`, `bearer-token`, `oauth2` or `service-account`.";
    SOURCE_MISSING = "aml-source-missing", "a credential that is a secret has a source",
        "`api-key`, `bearer-token` and `service-account` need `transport.credentials.source`, such as `env`.";
    OAUTH2_INCOMPLETE = "aml-oauth2-incomplete", "`oauth2` has `provider` and `function_id`",
        "Both go into `transport.credentials`.";
    // Rules that only AML's field reference has
    FIELD_TYPE = "aml-field-type", "a field has the type that AML gives it",
        "Quote text that looks like something else.";
    VALUE_UNKNOWN = "aml-value-unknown", "a field of `transport` has one of the values that its table lists",
        "Such as `aws`, `gcp` or `azure` for the `provider` of a `lambda`. The message lists them.";
    STATUS_UNKNOWN = "aml-status-unknown", "`status` is a state of AML",
        "`draft`, `active`, `deprecated` or `disabled`.";
    SPEC_VERSION_UNKNOWN = "aml-spec-version-unknown" Warning, "`spec_version` is a version that these rules are of",
        "The rules are from 1.2. A platform that approves another version may have other ones.";
    // Lints
    SIDE_EFFECTS_NONE = "aml-side-effects-none" Warning, "a tool of type `action` has side effects",
        "It changes something outside, by its type. Say what in `use_guidance.side_effects`, or make it a `retrieval`.";
    USE_UNGUIDED = "aml-use-unguided" Warning, "`use_guidance` describes when to use the tool, and when not",
        "`use_when` and `avoid_when` become part of an agent's instructions.";
    SIDE_EFFECTS_MISSING = "aml-side-effects-missing" Warning, "a tool of type `action` names its side effects",
        "Say in `use_guidance.side_effects` what a call changes.";
    REQUEST_INCOMPLETE = "aml-request-incomplete" Warning, "a `rest-api` transport has the address of its request",
        "`transport.base_url` is `https://` and a host, `transport.endpoint` a method in capitals, a space and a path: \
         `GET /parcels/{number}`. `import` makes no driver without them.";
    TRANSPORT_INCOMPLETE = "aml-transport-incomplete" Warning, "a `transport` has the fields that its table requires",
        "`lambda`: `provider`, `function_id`, `invocation_type`. `mcp`: `url`, `tool_name`. `message-queue`: `provider`, \
         `queue_url`. `database`: `engine`, `query_method`. A secret has a `name` or `secret_id`. AML's compiler takes a \
         definition without them, and no platform can call it.";
    NOT_IMPORTED = "aml-not-imported" Warning, "`import` makes a tool of the definition",
        "The definition is valid, and `toolward import aml` leaves it out for the reason in the message.";
    FIELD_UNKNOWN = "aml-field-unknown" Warning, "AML knows the name of a field",
        "AML's compiler reads past other fields, and so does `import`.";
    DEPRECATED_UNDATED = "aml-deprecated-undated" Warning, "a deprecated tool has the date of its last change",
        "Add `meta.last_updated`, as in `\"2025-04-01\"`.";
}
