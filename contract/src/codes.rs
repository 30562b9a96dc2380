//! Every diagnostic code with its severity, its rule and its explanation. The book's page is
//! generated from this table. The checks are in other modules.

use toolward_support::report::{Code, codes};

codes! {
    pub(crate) const Code;

    // Files and front matter
    FRONT_MATTER_MISSING = "front-matter-missing", "the file starts with a line of three dashes",
        "TOOL.md, DRIVER.md, ACTION.md, prompts and sidecars of resources are Markdown with YAML front matter. Put \
         `---` on the first line (no blank line before it), then the fields, then `---` again.";
    FRONT_MATTER_UNCLOSED = "front-matter-unclosed", "the front matter ends with a line of three dashes",
        "No second `---` line was found. Add it after the last field; the Markdown text follows it.";
    FRONT_MATTER_TOO_LARGE = "front-matter-too-large", "the front matter has at most 64 KiB",
        "Move long prose to the Markdown body. Move large schemas to `schemas/NAME.json`, and refer to them with \
         `$ref: \"schema:NAME\"`.";
    FILE_TOO_LARGE = "file-too-large", "the whole file has at most 1 MiB",
        "The body is for people. Move tables, data and pictures to separate files.";
    YAML_SYNTAX = "yaml-syntax", "the front matter is YAML 1.2",
        "The message has the reason from the YAML reader. Common causes: a tab for indentation, a colon in unquoted \
         text, a bracket that is not closed.";
    DESCRIPTION_CUT = "description-cut", "no comment cuts a description short",
        "In YAML, ` #` starts a comment, so the text after it is lost. Models choose tools by their signed \
         descriptions. Put the text between quotation marks, or put the comment on a separate line.";
    TEXT_CUT = "text-cut" Warning, "no comment cuts a text of several words short",
        "In YAML, ` #` starts a comment. If the ` #` belongs to the text, put the text between quotation marks.";
    YAML_ALIAS = "yaml-alias", "anchors and aliases are not used",
        "`&name` and `*name` make the text mean something else than it shows, and a short text can stand for a very \
         large value. Write the value out, or use `$defs` and `$ref` inside a schema.";
    YAML_TAG = "yaml-tag", "YAML tags are not used",
        "`!name` and `!!type` are refused. Remove the tag; quote a value that should be text.";
    YAML_MERGE_KEY = "yaml-merge-key", "merge keys are not used",
        "`<<` is refused. Write the keys out.";
    YAML_DUPLICATE_KEY = "yaml-duplicate-key", "a key occurs once in a mapping",
        "Readers disagree on which of two equal keys wins. Remove one.";
    YAML_MULTIPLE_DOCUMENTS = "yaml-multiple-documents", "the front matter is one YAML document",
        "A line with `...` ends the document, so nothing may follow it before the closing `---`. Remove the line.";
    YAML_KEY_NOT_STRING = "yaml-key-not-string", "keys are text",
        "`1:`, `true:` and `null:` are not text in YAML. Quote the key.";
    YAML_TOO_DEEP = "yaml-too-deep", "mappings and sequences are nested at most 64 deep",
        "Flatten the value, or move parts of a schema to `$defs`.";
    YAML_TOO_MANY_NODES = "yaml-too-many-nodes", "the front matter has at most 2048 values",
        "Move large schemas to `schemas/NAME.json`.";
    NUMBER_RANGE = "number-range", "numbers are finite, and integers are between -(2^53-1) and 2^53-1",
        "Other readers would round the number. Quote it if it is an identifier.";
    // Fields
    MISSING_FIELD = "missing-field", "required fields are present",
        "Add the field named in the message.";
    UNKNOWN_FIELD = "unknown-field", "only fields of the format are used",
        "A misspelt field would silently do nothing. Correct the name, or put your own data under `metadata`.";
    WRONG_TYPE = "wrong-type", "a field has the type that the format gives it",
        "YAML reads `1.0` as a number, `yes` as text, and an empty value as null. Quote text that looks like \
         something else.";
    WRONG_VALUE = "wrong-value", "a field has one of the values that the format allows",
        "The message lists the allowed values.";
    TEXT_LENGTH = "text-length", "`name` has 1 to 80 characters, `description` has 1 to 2000, and other texts are not empty",
        "Move longer text to the Markdown body. Leave out a field that would be empty.";
    TEXT_CONTROL_CHARACTER = "text-control-character", "names and descriptions have no control or bidirectional characters",
        "Such characters can make a text look like another one. Remove them; line feeds and tabs are fine in \
         descriptions.";
    ID_INVALID = "id-invalid", "ids are 2 to 80 lower-case letters, digits, dashes and dots",
        "Dots separate namespaces (`image.create`). Each part starts and ends with a letter or digit. See AIP-14, \
         \"Required fields\".";
    VERSION_INVALID = "version-invalid", "`version` is a full semantic version",
        "Write three numbers, `1.0.0`, optionally followed by `-pre.release` and `+build`.";
    MOVED_FIELD = "moved-field", "fields that moved to DRIVER.md are not in TOOL.md",
        "A contract describes what a tool does, and a driver describes how it runs. Move the field to the place \
         named in the message (AIP-14, \"Removed\").";
    DISCOURAGED_FIELD = "discouraged-field" Warning, "a contract has none of `async`, `streaming`, `priority`, `model` and `temperature`",
        "These fields concern the driver and have no effect here. Move them below the driver's `metadata`.";
    EXECUTE_IN_CONTRACT = "execute-in-contract" Warning, "a contract has no `execute`",
        "A tool's code belongs to its driver (AIP-30). The field is ignored: remove it, and write a DRIVER.md.";
    METADATA_INVALID = "metadata-invalid", "what the host reads under `metadata` is well formed",
        "`metadata.mcp.name` is 1 to 64 letters, digits, `_`, `-` and `.`. `metadata.mcp.result` is `structured` or \
         `content`, and `metadata.mcp.schemas` is `plain` or `exact`. `metadata.toolward` has `aliases`, \
         `namespace`, `search_hint` and `requires`.";
    MCP_NAME_MAPPED = "mcp-name-mapped" Warning, "`metadata.mcp.name` is letters, digits, `-` and single `_`",
        "Clients refuse other names, so the tool is shown under the name in the message. Write that name.";
    METADATA_UNKNOWN_KEY = "metadata-unknown-key" Warning, "`metadata.toolward` has only keys that the host reads",
        "The key has no effect. Correct its name, or put the key elsewhere below `metadata`.";
    // Capabilities
    CAPABILITY_INVALID = "capability-invalid", "a capability is `class:scope`, with a scope in the form that the class needs",
        "Hosts are `host`, `host:port`, `*.host` or `*`; workspace paths are absolute, without `..`; database \
         tables, secrets and services are plain names.";
    CAPABILITY_SCOPE_UNKNOWN = "capability-scope-unknown" Warning, "each capability in `mutates` has a scope of its class",
        "The word after the colon is not a scope of the class, as in `workspace:metadata`. The capability counts as \
         a change and grants nothing. An operator lets the tool run with `accepts`. If you mean a file, write its \
         absolute path.";
    CAPABILITY_CLASS_UNKNOWN = "capability-class-unknown" Warning, "`mutates` uses known classes",
        "An unknown class counts as a change and grants nothing. Correct its name, or have the operator accept the \
         class by name.";
    WILDCARD_NEVER_GRANTED = "wildcard-never-granted" Warning, "tools and secrets are named one by one",
        "`*` is never granted for tools and secrets. List their ids and names.";
    APPROVAL_AUTO_MUTATES = "approval-auto-mutates" Warning, "`approval: auto` needs an empty `mutates`",
        "If `mutates` is not empty, the JSON Schema of AIP-14 forbids `auto`, and this host reads it as the stricter \
         `on-mutate`. Write `approval: on-mutate`.";
    CONSTRAINT_KIND_UNKNOWN = "constraint-kind-unknown" Warning, "`driver_constraints` names known driver kinds",
        "The finding lists the known kinds. An unknown kind in `forbid` forbids nothing.";
    CONSTRAINTS_CONTRADICT = "constraints-contradict", "at least one driver kind satisfies `driver_constraints`",
        "Every required kind is also forbidden, so no driver could serve the tool. A component counts as `component` \
         and as `sdk`.";
    // Schemas
    SCHEMA_REFS_UNRESOLVED = "schema-refs-unresolved" Warning, "`schema_refs` of tools.json leads to schemas of the bundle",
        "A key of `schema_refs` is the NAME in `$ref: \"schema:NAME\"` of the same entry. Its value is the id of a file `schemas/ID.json`, with or without `schema:` before it.";
    INPUTS_NOT_OBJECT = "inputs-not-object" Warning, "`inputs` describes an object",
        "Callers send named arguments; MCP needs an object. Wrap the value in a property.";
    CONTEXT_SCHEMA_CONFLICT = "context-schema-conflict", "`contextSchema` and `metadata.contextSchema` are equal if both are given",
        "Keep one.";
    CONTEXT_MEMBER_RESERVED = "context-member-reserved" Warning, "`contextSchema` has no `pinnedProvider`",
        "This member of a call's context picks the driver (AIP-30). Hosts remove it before they check the context, \
         and no driver gets it. Use another name.";
    EXAMPLE_INPUT_INVALID = "example-input-invalid", "the input of an example satisfies `inputs`",
        "Correct the example or the schema.";
    EXAMPLE_OUTPUT_INVALID = "example-output-invalid", "the output of an example satisfies `outputs`",
        "Correct the example or the schema.";
    EXAMPLE_DUPLICATE_NAME = "example-duplicate-name", "examples have different names",
        "Test reports identify examples by their names. Rename one.";
    // Actions
    ACTION_REFERENCE_INVALID = "action-reference-invalid", "`implements` is an action id, a registry reference, a path or an inline action",
        "Write `storage:commit`, `@owner/library/action`, `./actions/NAME/ACTION.md`, or one of `{ref: ...}`, \
         `{file: ...}` and `{inline: {...}}`. A path starts at the bundle's root or at the contract's folder, and \
         stays in the bundle.";
    ACTION_SCHEMA_MISSING = "action-schema-missing" Warning, "an ACTION.md has `schema: action/v1`",
        "AIP-39 demands this field. Without it, a document with `name` and `version` is read by the rules of earlier \
         hosts; this version of the host is the last that does so. Add `schema: action/v1`, and remove `name`, which \
         AIP-39 does not have.";
    ACTION_ID_DIFFERS = "action-id-differs" Warning, "`verb` and `target_kind` match the action's id",
        "The id `storage:commit` names the target kind `storage` and the verb `commit`. The host uses the field's value. A reader who looks only at the id gets another value. Leave the field out, or correct it.";
    ACTION_UNKNOWN = "action-unknown", "the path that `implements` names leads to an action",
        "Put an ACTION.md at the path, correct the path, or write the action inline. A tool can't be compared with \
         an unknown action.";
    ACTION_UNRESOLVED = "action-unresolved", "the action that `implements` names is in the bundle or in an available library",
        "An id is looked up in the bundle, and then in the libraries of one publisher: the publisher with the \
         longest prefix that covers the id. `@owner/library/action` is the ACTION.md in the folder `action` of the \
         bundle `library`; `owner` is the name of the bundle's publisher in the trust store. Libraries are bundles \
         that are installed or named for the same command; nothing is fetched. Install the library, trust its \
         publisher for the action, or put the ACTION.md into the bundle.";
    ACTION_ELSEWHERE = "action-elsewhere" Warning, "the action that `implements` names is in the bundle",
        "A host that has the library of the action takes the action from there. Any other host refuses the bundle. \
         The publisher of the tool must document which library the tool needs. Without the library, the contract \
         does not show what the action demands.";
    ACTION_WIDENED = "action-widened", "a tool declares at least what its action declares",
        "The action is a minimum: the tool may mutate more, require more and be stricter about approval, but it must \
         not declare less. The message names the field and both values (AIP-14, \"Action implementation\").";
    ACTION_OVERRIDDEN = "action-overridden", "`category` and `target_kind` come from the action",
        "They are inherited unchanged. Remove the field.";
    ACTION_FIELD_ALONE = "action-field-alone", "`category`, `target_kind` and `fires_events` need `implements`",
        "These fields belong to an action. Add `implements`, or remove the field.";
    FIELD_WITHOUT_EFFECT = "field-without-effect" Warning, "a contract or action has only fields that have an effect",
        "The field is kept for people and programs to read, and decides nothing here.";
    // Drivers
    KIND_UNKNOWN = "kind-unknown", "`kind` is a driver kind",
        "The message has the kinds. AIP-30 also has the kinds cli, mcp, sdk and builtin, whose drivers do not run here.";
    KIND_UNSUPPORTED = "kind-unsupported" Warning, "a driver has a kind that this host runs",
        "The driver is valid, and will be skipped when a call is routed.";
    DRIVER_FIELD_IGNORED = "driver-field-ignored" Warning, "a driver has only fields that this host uses",
        "AIP-30 has the field, but it means nothing for a component or a declarative http driver.";
    DRIVER_FIELD_WITHOUT_EFFECT = "driver-field-without-effect" Warning, "a driver has only fields that have an effect",
        "The field is only kept for clients to read, or has an effect only for drivers of another kind. For example, \
         a limit on code has no effect if no code runs, and a listed host has none unless it is the host of \
         `base_url`. Declare what a call needs in `requires`; the operator's policy grants it.";
    COST_UNCOUNTED = "cost-uncounted" Warning, "this host acts on the cost class",
        "`metered` is shown to clients and operators. No host counts calls against a quota yet.";
    DRIVER_AUTH_UNSUPPORTED = "driver-auth-unsupported" Warning, "a driver has secrets instead of a login",
        "The names in `auth.state.env` are secrets that the driver needs, as in `requires.secrets`; the operator's \
         `[[secret]]` has the source and the destination of each. This host runs no login and no refresh, watches \
         for no expiry and reads no files in `auth.state.paths`.";
    COMPONENT_NAME = "component-name", "`component` is a `.wasm` file in the folder of DRIVER.md",
        "Give the plain file name, for example `driver.wasm`: letters, digits, `.`, `_` and `-`, no directory.";
    COMPONENT_UNEXPECTED = "component-unexpected", "`component` needs `kind: component`",
        "Remove the field or correct the kind.";
    IMPLEMENTS_EMPTY = "implements-empty", "a driver implements at least one tool",
        "Add an entry with `tool` and `version`.";
    IMPLEMENTS_DUPLICATE = "implements-duplicate", "each pair of tool and version range occurs once in `implements`",
        "Merge the two entries.";
    TOOL_REFERENCE_INVALID = "tool-reference-invalid", "`tool` is a contract id or the path of a TOOL.md",
        "Write `image.create` or `./tools/image.create/TOOL.md`. A path leads to the contract with the id in that TOOL.md.";
    VERSION_RANGE_INVALID = "version-range-invalid", "`version` in `implements` is a range in the syntax of npm",
        "Examples: `^1.2.0`, `>=1.2.0 <2.0.0`, `1.x || 2.x`. A bare `1.2.3` means only that version.";
    MAPPING_INVALID = "mapping-invalid", "`mapping` gives each driver field an input name, or `{from, transform}`",
        "The key is the name that the driver receives, and the value is the name in the contract. A key must not be the name of an input that the mapping does not rename: the driver would get two values under one name.";
    TRANSFORM_UNKNOWN = "transform-unknown" Warning, "`transform` names a transform that hosts know",
        "The message lists the known transforms. AIP-30 also has transforms in a driver's entry file, but no host \
         runs this file. So a call that gives the input goes to another driver. `toolward show TOOL --drivers` names the transform.";
    COMPONENT_CALL_INVALID = "component-call-invalid", "`metadata.component` describes how to call a component",
        "The field needs `kind: component`. `world` is toolward, wit or a world of another host. For wit, `export` \
         names a function, `arguments` is named or whole, `result` is unwrap or keep, and `bytes` is base64, utf8 or \
         array. The other worlds have no further fields.";
    COMPONENT_WORLD_UNKNOWN = "component-world-unknown", "`metadata.component.world` is a world that hosts call",
        "Write `toolward` for the handler of toolward:driver, or `wit` for a function with typed parameters. Another \
         host's world is known only if this program has the adapter for that host.";
    HTTP_SECRET_UNUSED = "http-secret-unused" Warning, "a declarative driver sends each secret that it names",
        "`auth.state.env` declares the secret, so the operator is asked for it. A request has the secret only if a \
         header or a parameter has `${secrets.NAME}`.";
    HTTP_FORMAT_OLD = "http-format-old" Warning, "an http driver has the form of AIP-31",
        "Write `base_url: https://HOST` and, in `metadata.http`, `endpoint` without query, `query_template`, \
         `response_extract` instead of `response`, and `${secrets.NAME}` instead of `${secret.NAME}`. With \
         `base_url`, an entry without `method` is a POST. The next version reads only the form of AIP-31.";
    HTTP_BASE_URL_INVALID = "http-base-url-invalid", "`base_url` is a literal https URL of one host",
        "Write `https://host` or `https://host:port`, optionally with a path. User, query, fragment, placeholders, \
         `.` and `..` are refused, because a call must not decide where requests go.";
    HTTP_EGRESS = "http-egress", "the host of `base_url` is one of the driver's egress hosts",
        "List the host in `network.egress`, with its port if the URL has one. Requests go only to this host, by \
         https, even if other hosts are listed.";
    HTTP_ENDPOINT_INVALID = "http-endpoint-invalid", "`endpoint` is a path below `base_url`",
        "It starts with one `/`, and has no scheme, host, fragment or `..`. Its segments may have the placeholders \
         `${input.NAME}` and `${context.NAME}`. Parameters go into `query_template`.";
    HTTP_QUERY_INVALID = "http-query-invalid", "parameters have literal names, each once",
        "Only the values of `query_template` may have placeholders. A name occurs in `query_template` or in the query of `endpoint`, but not in both.";
    HTTP_SECRET_POSITION = "http-secret-position", "a secret is in a header, or is the whole value of one parameter",
        "In a header, the secret is the last part, as in `Bearer ${secrets.NAME}`. In `query_template`, it is the \
         whole value of a parameter whose name has only letters, digits, `-`, `.`, `_` and `~`; the operator's \
         `[[secret]]` must have `query`. Paths and bodies end up in logs, so a secret is refused there.";
    HTTP_HEADER_INVALID = "http-header-invalid", "headers have names that a driver may set, and literal or templated values",
        "A driver can't set `Host`, `Content-Length`, hop-by-hop and `Proxy-*` headers. `idempotency_key_header` \
         names a header that is not set otherwise.";
    HTTP_TEMPLATE_INVALID = "http-template-invalid", "placeholders are `${input.NAME}`, `${context.NAME}` and, in the places for secrets, `${secrets.NAME}`",
        "After the name, `${input.NAME}` and `${context.NAME}` may have `| default('TEXT')` and, as the last part, \
         `| json`. A number or boolean as the default has no quotes. Other expressions are not evaluated. Write `$$` \
         for a dollar sign before a brace.";
    HTTP_BODY_UNEXPECTED = "http-body-unexpected", "GET, HEAD and OPTIONS requests have no body",
        "Use another method, or put the values into `query_template`.";
    HTTP_EXTRACT_INVALID = "http-extract-invalid", "`response_extract` is a path such as `$.data[0].url`",
        "A path is `$` and at most 16 steps: `.name`, `[0]`, one `[*]` and one `[?(@.name=='text')]`. Regular \
         expressions, `..` and slices are not evaluated.";
    HTTP_ERROR_INVALID = "http-error-invalid", "`errors` maps statuses of the service to error codes of the tool",
        "A key is a status in quotes, from \"400\" to \"599\". Its value has `code` and optionally `message`, `hint` \
         and `retryable`. A code has lower-case letters, digits and `_`, such as `not_found`, or two parts, such as \
         `shop:sold-out`.";
    HTTP_INPUT_UNPLACED = "http-input-unplaced" Warning, "every input has a place in the request",
        "An input that neither a placeholder nor the body sends would be dropped silently. Use it in `endpoint`, \
         `query_template`, `headers` or `body_template`. If it is optional, you can name it in \
         `schema_narrowing.drop_inputs` instead: calls that give it then go to another driver or are refused.";
    HTTP_INPUT_UNKNOWN = "http-input-unknown", "placeholders name inputs of the contract, and members of its contextSchema",
        "Correct the name. If `mapping` renames an input, the placeholder has the new name.";
    HTTP_UNDECLARED = "http-undeclared", "the contract declares what a declarative driver does",
        "Declare the host in `requires.network` or `mutates` of the contract, or in `requires.network` of the \
         driver. For POST, PUT, PATCH and DELETE, declare `network:HOST` or `external:SERVICE` in `mutates`. Declare \
         a secret in `requires.secrets` of the contract or the driver. Otherwise every call's request would be \
         refused.";
    FORM_INVALID = "form-invalid", "the output of a driver of `kind: form` can be asked for as a form",
        "`outputs` of the contract is a flat object of at most 32 fields: texts, numbers, booleans and choices, none \
         of which asks for a credential. A person sees exactly what their answer is checked against.";
    FORM_UNDECLARED = "form-undeclared", "a driver of `kind: form` declares that it asks a person",
        "Add `user: [form]` to `requires` of the contract or of the driver. The operator must grant it.";
    DRIVER_VERSION_MISMATCH = "driver-version-mismatch" Warning, "a driver's version range includes the contract of its bundle",
        "The driver does not serve the contract: hosts skip it. Widen the range after checking that the driver \
         serves the new contract.";
    DRIVER_DROPS_INPUT = "driver-drops-input", "`drop_inputs` names optional inputs of the contract",
        "A required input can't be dropped: without it, the tool would be another tool. An unknown name is probably a spelling mistake.";
    DRIVER_DROPS_OUTPUT = "driver-drops-output", "`drop_outputs` names optional outputs of the contract",
        "Every driver returns the required outputs.";
    DRIVER_MAPS_UNKNOWN_INPUT = "driver-maps-unknown-input", "`mapping` takes its values from inputs of the contract",
        "Correct the name.";
    DRIVER_TIMEOUT_WIDENED = "driver-timeout-widened", "`timeout_override_ms` is at most the contract's `timeout_ms`",
        "The contract sets the longest time. Lower the value.";
    DRIVER_KIND_FORBIDDEN = "driver-kind-forbidden" Warning, "`driver_constraints` of the contract permits the driver's kind",
        "Hosts skip the driver for this contract, and take other drivers. Use another kind: do not work around the \
         constraint.";
    // JSON and tools.json
    INDEX_VERSION_UNSUPPORTED = "index-version-unsupported", "`version` of tools.json is 1 or 2",
        "A newer document needs a newer host. Update the host, or pack the bundle with an older `toolward`.";
    INDEX_DUPLICATE_ID = "index-duplicate-id", "a tool occurs once in tools.json",
        "Remove one of the entries.";
    TRANSPORT_KIND_UNKNOWN = "transport-kind-unknown", "`transport.kind` is exec or http, or component in version 2",
        "A component transport needs `\"version\": 2`.";
    TRANSPORT_COMMAND_RELATIVE = "transport-command-relative", "`transport.command` is an absolute path",
        "A relative command would depend on where the host was started.";
    TRANSPORT_URL_INVALID = "transport-url-invalid", "`transport.url` is an absolute http or https URL",
        "Scheme and host are literal; placeholders may follow them.";
    TRANSPORT_COMMAND_REFUSED = "transport-command-refused" Warning, "`transport.command` of exec is a specific program",
        "Shells, interpreters, and programs that start others (`env`, `sudo`, `ssh`, `docker`, `git`) run any \
         command that they are given, so no operator could allow just one command. At most 64 arguments are allowed, \
         of 4096 bytes each, without control characters. The tool is listed and can't be called.";
    TRANSPORT_URL_REFUSED = "transport-url-refused" Warning, "`transport.url` is https, and has placeholders only in path segments and query values",
        "A placeholder is `${NAME}` or `${input.NAME}`; secrets go into headers. Plain http, a fragment, and \
         characters that must be percent-encoded are refused. The tool is listed and can't be called.";
    TRANSPORT_HEADER_REFUSED = "transport-header-refused" Warning, "`transport.headers` have static values, with placeholders only for secrets",
        "A placeholder is `${secret:ID}`, `${secret.ID}` or, for an id in `secrets`, `${ID}`. Other uses of `$`, `{` \
         and `}` would be sent unchanged, so they are refused. An entry can't set `Host`, `Content-Length`, \
         hop-by-hop and `Proxy-*` headers. The tool is listed and can't be called.";
    TRANSPORT_INPUT_UNPLACED = "transport-input-unplaced" Warning, "a request without a body has a place for every input",
        "POST, PUT and PATCH send the input as JSON. With another method, an input that `transport.url` does not use \
         would be dropped silently. The tool is listed and can't be called.";
    TRANSPORT_UNDECLARED = "transport-undeclared" Warning, "an http transport uses only what its entry declares",
        "Declare the host in `capabilities` as `net:HOST`, and each secret in `secrets`. Without a declared capability, the entry's tool is listed, but can't be called.";
    TRANSPORT_CAPABILITY_UNGRANTABLE = "transport-capability-ungrantable" Warning, "every capability family of an entry can be granted",
        "Write a family with its scope: `net:HOST`, `fs:/PATH`, `db:NAME`. A family without a scope (`exec`, \
         `model`, `time`) names nothing that a policy can grant. So the entry's tool is listed, but denied \
         (`cap_denied`). The other tools of the file run.";
    INDEX_ENTRY_MISSING = "index-entry-missing", "every contract with a driver in the bundle is in tools.json",
        "Run `toolward pack` again; don't edit tools.json by hand.";
    INDEX_ENTRY_EXTRA = "index-entry-extra", "every entry of tools.json has a contract with a driver in the bundle",
        "Run `toolward pack` again; don't edit tools.json by hand.";
    INDEX_DISAGREES = "index-disagrees", "tools.json and TOOL.md agree",
        "Run `toolward pack` again; don't edit tools.json by hand. The message names the field and both values.";
    // Prompts and resources
    PROMPT_MESSAGES = "prompt-messages", "a prompt gives 1 to 256 messages",
        "The text below the front matter is the prompt. Write a text, or split the prompt.";
    ARGUMENT_NAME = "argument-name", "an argument of a prompt or resource has a unique name",
        "A name is a letter and up to 63 letters, digits and `_`, and no two arguments have the same.";
    ARGUMENT_CREDENTIAL = "argument-credential", "prompts and resources ask for no credentials",
        "A person who fills in a prompt would type a password into another party's form, and the password would end \
         up with the model. A tool gets its credentials as secrets (`requires.secrets`).";
    ARGUMENT_UNUSED = "argument-unused" Warning, "every argument is used",
        "The text has no `{{name}}` for the argument, so the argument does nothing. Use it, or remove it.";
    PLACEHOLDER_UNKNOWN = "placeholder-unknown", "every `{{name}}` is an argument",
        "Correct the name, or add it to `arguments`. If you mean the braces, write `\\{{name}}`.";
    RESOURCE_URI = "resource-uri", "the URI of a resource is absolute and has a custom scheme",
        "A resource without `arguments` has `uri`. A resource with `arguments` has `uri_template`, in which each \
         argument is a variable `{name}` in place of a whole segment. The schemes toolward, http, https, file, data, \
         blob and javascript mean something else to clients.";
    MEDIA_TYPE = "media-type", "`mime_type` is a media type",
        "Write `type/subtype` in lower case, without parameters, such as `text/plain`.";
}
