//! The table of this crate's diagnostic codes. The contract crate defines the codes of the
//! documents.

use toolward_support::report::{Code, codes};

codes! {
    pub const Code;

    BUNDLE_TOML_SYNTAX = "bundle-toml-syntax", "`bundle.toml` can't be read",
        "The file is not TOML 1.0 in UTF-8 with LF line ends, is larger than 256 KiB, or has control, bidirectional or invisible characters.";
    BUNDLE_TOML_UNKNOWN_KEY = "bundle-toml-unknown-key", "`bundle.toml` has an unknown key",
        "A misspelt key would be ignored silently, so every unknown key is an error. The message names the keys that exist.";
    BUNDLE_TOML_MISSING_KEY = "bundle-toml-missing-key", "`bundle.toml` lacks a key",
        "`id`, `version`, `sequence` and `publisher` are required; a `[[build]]` table needs `crate` and `output`.";
    BUNDLE_TOML_VALUE = "bundle-toml-value", "a key of `bundle.toml` has an invalid value",
        "Ids and publisher names are lower-case ASCII, versions are semantic, times are RFC 3339, and paths stay below the bundle's directory.";
    BUNDLE_TOML_WANTED = "bundle-toml-wanted" Warning, "a directory has documents and no `bundle.toml`",
        "Each document was checked by itself. `pack` and `serve` need a bundle: write the `bundle.toml` that the hint shows.";
    BUNDLE_TOML_MISSING = "bundle-toml-missing", "the directory has no `bundle.toml`",
        "A bundle under work has a `bundle.toml` at its root. `toolward new` writes one.";
    BUNDLE_EMPTY = "bundle-empty", "the bundle has nothing that can be used",
        "Contracts are `TOOL.md` files below `tools/`, drivers are `DRIVER.md` files below `drivers/`, actions are `ACTION.md` files below `actions/`, prompts are Markdown files below `prompts/`, and all files below `resources/` are resources.";
    FILE_UNREADABLE = "file-unreadable", "a file of the bundle can't be read",
        "The file is missing, or you may not read it.";
    FILE_NOT_REGULAR = "file-not-regular", "a link, device, socket or pipe is among a bundle's files",
        "Symbolic links are not followed, because a bundle has only files inside its directory. Replace a link with the file itself, or remove the link, device, socket or pipe.";
    FOLDER_TWICE = "folder-twice", "a directory has the same folder with and without a dot, such as `tools` and `.tools`",
        "Both are the same folder of the bundle. Move the files of one into the other.";
    BUNDLE_TOO_LARGE = "bundle-too-large", "a directory holds more than a bundle may",
        "A bundle has at most 4096 files, of 512 MiB together. Move files that are not part of the bundle out of its folders.";
    DOCUMENT_TOO_LARGE = "document-too-large", "a document is larger than allowed",
        "A document with front matter has at most 1 MiB, `tools.json` 4 MiB, `bundle.toml` 256 KiB. A larger file is not read.";
    FILE_KIND = "file-kind", "a file is not of a kind that can be checked",
        "`check` reads TOOL.md, DRIVER.md, ACTION.md, prompts, sidecars of resources, tools.json, bundle.toml, components, and directories of these files. It also reads AML's files `NAME.tool.md`, and directories of them.";
    FILE_NOT_UTF8 = "file-not-utf8", "a document of the bundle is not UTF-8",
        "TOOL.md, DRIVER.md, ACTION.md, prompts, sidecars of resources, tools.json and bundle.toml are UTF-8 text.";
    FILE_NAME = "file-name", "a file's name can't be in a bundle",
        "Names have ASCII letters, digits, `.`, `_` and `-`, don't start or end with a dot, are unique ignoring case, and are not device names of Windows. Files are at most 8 levels deep.";
    FILE_SKIPPED = "file-skipped" Note, "a file is left out of the bundle",
        "Hidden files below the packed folders are not packed.";
    DUPLICATE_ID = "duplicate-id", "two documents have the same id",
        "Within a bundle, no two documents of a kind have the same id. No two prompts or resources ask for the same name or URI, and no URI fits two templates.";
    FOLDER_NAME = "folder-name" Warning, "a folder has another name than the id in it",
        "AIP-14 asks for the contract's id as the name of the folder of a TOOL.md, so that readers find the contract faster.";
    DESCRIPTION_TODO = "description-todo" Warning, "a tool has no description yet",
        "If `toolward import` finds no description, it writes one that starts with TODO. Models choose tools by \
         their descriptions, so `pack` refuses such a description. Describe what the tool does, and when to use it.";
    BUDGET_NOT_COUNTED = "budget-not-counted" Warning, "a budget of tokens or money is shown, and nothing counts it yet",
        "tools.json has `budget.tokens` and `budget.usd` as hints for the runtime. This host reads them and shows them to people, but refuses no call because of them. The limits of a policy apply.";
    CONTRACT_NARROWED = "contract-narrowed", "a contract allows less than an earlier release of the same major version",
        "`check --against` compares the schemas. Either an input that was accepted no longer is, which breaks callers; or an output that was allowed no longer is, which breaks drivers of other bundles (AIP-14, \"Stable identity\"). Give the contract a new major version, or before 1.0.0 a new minor version, or keep what the contract allowed.";
    CONTRACT_WIDENED = "contract-widened", "a contract allows an output that an earlier release of the same major version did not allow",
        "`check --against` compares the schemas. A caller that relies on the output's type, values or required properties may get others, or miss a property that the schema no longer names. New properties are allowed. Give the contract a new major version, or keep what it promised.";
    CONTRACT_EFFECTS_ADDED = "contract-effects-added", "a contract changes or needs more than an earlier release of the same major version",
        "`check --against` compares `mutates` and `requires`. Operators and callers agreed to less. Give the contract a new major version, or before 1.0.0 a new minor version, or keep what the contract declared.";
    CONTRACT_TIMEOUT_SHORTER = "contract-timeout-shorter" Warning, "a contract allows less time than an earlier release of the same major version",
        "`check --against` compares `timeout_ms`. Calls that ended in time before may time out now.";
    DRIVER_DROPS_ADDED = "driver-drops-added", "a driver drops inputs or outputs that an earlier release of the same major version carried",
        "`check --against` compares `drop_inputs` and `drop_outputs`. A call that gives the input goes to another driver now, or to none. Give the driver a new major version, or carry the value.";
    CONTRACT_LOWERED = "contract-lowered", "a contract has a lower version than in an earlier release",
        "`check --against` compares the versions. A driver or a lock that names a range of versions may then get another contract under an older number. Give the contract a version above the earlier one.";
    CONTRACT_GONE = "contract-gone" Warning, "a contract of an earlier release is not in this one",
        "`check --against` found its id in no document. Callers and drivers of the tool find nothing after the update.";
    CONTRACT_CHANGED = "contract-changed" Warning, "a contract differs from an earlier release in a way that can't be judged",
        "`check --against` found no value that shows whether a `pattern`, `not` or similar keyword allows less than before. If it allows less, give the contract a new major version.";
    REQUIRED_UNDECLARED = "required-undeclared" Warning, "`required` names a property that the schema does not declare",
        "The value is not described, so a model must guess it. Probably the name is misspelt, or it was not changed \
         when the property got another name.";
    SCHEMA_KEYWORD_UNKNOWN = "schema-keyword-unknown" Warning, "a schema has a keyword that JSON Schema 2020-12 does not have",
        "Such a keyword has no effect. The hint names what 2020-12 has instead. A custom keyword starts with `x-`.";
    SCHEMA_DEFAULT_INVALID = "schema-default-invalid" Warning, "a `default` does not match its schema",
        "Models and forms show the default, but a caller that sends it is refused. The host fills in no default.";
    SCHEMA_ROOT_COMPOSED = "schema-root-composed" Warning, "the schema of an input has a composition, such as `oneOf`, at its root",
        "APIs of models refuse `oneOf`, `anyOf`, `allOf`, `if`, `not`, `enum` and references at the root. They refuse the whole session, not only the tool. So MCP clients are shown one object with the properties of all branches; the host validates by the whole schema. With `metadata.mcp.schemas: exact`, the tool is listed unchanged.";
    SCHEMA_REFERENCE_KEPT = "schema-reference-kept" Warning, "a reference in the schema of an input can't be inlined",
        "Many clients do not follow `$ref`. So MCP clients are shown the schema to which it refers, unless this schema leads back to itself or adds more than 32 KiB. With `metadata.mcp.schemas: exact`, the tool is listed unchanged.";
    EGRESS_ANY = "egress-any" Warning, "a driver asks for every host",
        "With `*` in `network.egress`, a driver may send what it is given to any host. The same applies to `net:*` in `capabilities` of a version 1 tools.json. List the hosts that the driver needs. If the operator decides the hosts, explain this in the driver's text.";
    EGRESS_EMPTY = "egress-empty" Warning, "a driver lists no host, and its contract needs the network",
        "A driver reaches only what `network.egress` of its DRIVER.md lists, so every request of this driver is refused.";
    LOOKS_LIKE_SECRET = "looks-like-secret" Warning, "an example, a request or metadata has something that looks like a key",
        "Bundles are published unchanged. The text has the form of an access key, a private key or a signed token. \
         If the key is real, revoke it. Write a placeholder instead.";
    DRIVER_MISSING = "driver-missing" Warning, "a contract has no driver in the bundle",
        "A bundle of contracts only is allowed: its drivers may come from another publisher. If that is not \
         intended, add a DRIVER.md whose `implements` names the contract and a range that includes its version.";
    DEFAULT_DRIVER_UNKNOWN = "default-driver-unknown" Warning, "`default_implementation` names no driver of the bundle",
        "No driver of this bundle has this name and implements the contract. So the driver is not chosen unless another bundle has it.";
    DRIVER_PLATFORM = "driver-platform" Warning, "a driver does not run on this machine",
        "`requires.os` or `requires.arch` of its DRIVER.md names other machines, so a host here never chooses the driver. The words of AIP-30 (`darwin`, `x64`, `arm64`) and of Rust (`macos`, `x86_64`, `aarch64`) mean the same.";
    TOOL_REFERENCE_MISSING = "tool-reference-missing", "a driver implements a contract that is not at its path",
        "`implements[].tool` is the path of a TOOL.md of the same bundle, from the folder of DRIVER.md or from the bundle's root. The driver serves the contract whose id is in this TOOL.md; the folder's name does not matter. For a contract of another bundle, write its id.";
    TOOL_REFERENCE_UNBOUND = "tool-reference-unbound" Warning, "a driver names its contract by a path, in a bundle without contracts",
        "A path leads only to a contract of the same bundle, so the entry has no effect. For a contract of another bundle, write its id.";
    TOOL_REFERENCE_UNKNOWN = "tool-reference-unknown" Warning, "a driver implements a contract that is not in the bundle, but a contract with almost the same id is",
        "A driver may implement a contract of another bundle. But here no driver names the contract with almost the same id, so the id is probably misspelt.";
    FINDINGS_TOO_MANY = "findings-too-many", "a bundle has too many findings",
        "After 4096 errors and warnings, the other documents are not read. Correct what is listed, then check again.";
    SCHEMAS_TOO_LARGE = "schemas-too-large", "the schemas of a bundle's contracts are too large together",
        "Every host that loads the bundle compiles the schemas and keeps them in memory. A pattern counts as a hundred other values. Split the bundle, or use fewer patterns.";
    COMPONENT_STALE = "component-stale", "a component is older than its sources",
        "When `toolward build` builds a component, it keeps the digest of the sources in `.toolward-built` next to \
         `bundle.toml`. The sources have changed since, so the component would be tested and signed without the \
         changes. Build it again. A component that another program wrote is not compared. Documents (`*.md`), \
         leftovers of editors, build tools and interpreters, and files that can't be read (such as symbolic links) \
         do not count as sources.";
    COMPONENT_MISSING = "component-missing", "a driver's component is missing",
        "A DRIVER.md of kind `component` names a file in its folder. If a `[[build]]` of bundle.toml writes the \
         file, `toolward build` makes it.";
    COMPONENT_INVALID = "component-invalid", "a driver's component can't be used",
        "The file is not a WebAssembly component, or is larger or more deeply nested than a host accepts.";
    COMPONENT_WORLD = "component-world", "a driver's component exports no world that hosts know",
        "A driver exports `toolward:driver/handler@0.1.0`, or its DRIVER.md names in `metadata.component` another \
         export for each contract. The message lists what the component exports.";
    COMPONENT_EXPORT_MISSING = "component-export-missing", "a driver's component does not export the function that DRIVER.md names",
        "`metadata.component.export` is the name of a function as `toolward inspect` lists it: `func`, or `ns:pkg/iface@1.0.0#func`.";
    COMPONENT_SIGNATURE = "component-signature", "a function does not fit the contract that it implements",
        "If the contract is in the same bundle, each input must be a parameter, and each parameter that is not an `option` must be a required input. The JSON of an input and the JSON of its parameter must have a type in common. `mapping` gives inputs other names.";
    COMPONENT_TYPE_UNSUPPORTED = "component-type-unsupported", "a function has a type that no call can pass",
        "A type such as a resource can't be passed: each call has a new instance, which the resource would not outlive. Or the function's name can't be written in DRIVER.md.";
    COMPONENT_TYPE_TOO_LARGE = "component-type-too-large", "a component has more functions or larger types than a host reads",
        "A host reads at most 512 functions, 2,000 types, 32 levels of types, 64 parameters, 256 fields or cases, and names of 200 bytes. A function beyond these limits is not offered; the other functions are.";
    TOOL_NOT_SERVED = "tool-not-served", "a driver's component does not serve a tool that its DRIVER.md implements",
        "`build` and `test` call the component without any grant: once for each tool of `implements`, and once for a tool that no component knows. The component answered both with `not_found` and the id. Give the component a handler for exactly the id in DRIVER.md, or remove the entry. A component that answers unknown ids in another way is not judged.";
    COMPONENT_IMPORT = "component-import", "a driver's component imports what no host provides",
        "A host provides `toolward:driver` 0.1 and the WASI 0.2 packages cli, io, clocks, random, filesystem, sockets, http and keyvalue.";
    COMPONENT_UNDECLARED = "component-undeclared", "a driver's component imports a capability that nothing declares",
        "If the component imports `wasi:http`, declare hosts in `requires.network` of the contract or of DRIVER.md, \
         or `network:…` or `external:…` in `mutates` of the contract. `network.egress` of DRIVER.md names one of these \
         hosts (with `external:…`, any host), or is `[]` if the component reaches none. If the component imports \
         `wasi:keyvalue`, declare a `database`. A host refuses the bundle by the same check.";
    COMPONENT_STRAY = "component-stray" Warning, "a component belongs to no driver",
        "No DRIVER.md in its folder names this file. The file is packed and signed all the same.";
    DRIVER_ENTRY_UNUSED = "driver-entry-unused" Warning, "an entry file belongs to a driver that runs no code",
        "No host runs a `driver.ts` or `driver.js` (AIP-30) of a driver without a component. The file is packed and \
         signed all the same.";
    BUILD_OUTPUT_UNUSED = "build-output-unused" Warning, "a `[[build]]` writes a component that no driver names",
        "The `output` of a build is the file that a DRIVER.md of kind `component` names.";
    SNAPSHOT_FILES = "snapshot-files", "a driver with a snapshot may be given files",
        "A Go program looks up its directories only when it starts. With a snapshot, it starts in the build, where it has no directories. Remove `snapshot` from the `[[build]]`, or remove `workspace` from what the driver and its contracts declare. A contract of another bundle may declare files, so a driver of such a contract can't have a snapshot.";
    PROMPT_FILE = "prompt-file", "a prompt embeds a file that can't be embedded",
        "A line `[text](resources/PATH)` names a resource of the same bundle that is not a template. A line \
         `![text](resources/PATH)` names an image or a sound. All files of one prompt have at most 8 MiB together.";
    PROMPT_STRAY = "prompt-stray" Warning, "a file below `prompts/` is not a prompt",
        "Prompts are Markdown files, with names that end in `.md`. The file is packed and signed, and not served.";
    RESOURCE_SIDECAR = "resource-sidecar", "a sidecar describes no resource",
        "`NAME.resource.md` describes the file `NAME` in the same folder, below `resources/`.";
    RESOURCE_TEMPLATE = "resource-template", "a template is not text",
        "A resource with `arguments` must be text in UTF-8, by its media type and by its bytes, because the values of the arguments are put into the text.";
    RESOURCE_TOO_LARGE = "resource-too-large" Warning, "a resource is too large to be served",
        "A client reads a resource as one message, of at most 8 MiB. The file is packed and signed, and not served.";
    TOOLS_JSON_STALE = "tools-json-stale" Warning, "the authoring directory has a `tools.json`",
        "`pack` makes tools.json from the contracts and drivers, and does not use an existing one. The exception is \
         a tools.json of version 1, which `pack` uses, since a person wrote it.";
    TOOLS_VERSION = "tools-version", "the manifest gives `tools.json` another version than it has",
        "`version` in `[artifacts.tools]` of manifest.toml must be the version of the document itself, so that a reader of only the manifest knows what the host reads.";
    VERIFICATION = "verification" Warning, "verification accepted something that an operator should know",
        "For instance, the example key signed the bundle, or the bundle has expired and the host runs in audit mode.";
}
