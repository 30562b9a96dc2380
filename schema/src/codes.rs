//! The codes of JSON texts and of schemas, with severity, rule and explanation. The book's page is
//! generated from this table.

use toolward_support::report::{Code, codes};

codes! {
    pub const Code;

    // JSON
    JSON_SYNTAX = "json-syntax", "the text is JSON (RFC 8259, UTF-8)",
        "No comments, no trailing commas, double quotes only.";
    JSON_TRAILING_DATA = "json-trailing-data", "nothing follows the JSON value",
        "Send one value.";
    JSON_DUPLICATE_KEY = "json-duplicate-key", "a key occurs once in an object",
        "Readers disagree on which of two equal keys wins. Remove one.";
    JSON_TOO_DEEP = "json-too-deep", "arrays and objects are nested at most 64 deep",
        "Flatten the value.";
    JSON_TOO_LARGE = "json-too-large", "the text is within the size limit",
        "The message gives the limit: 1 MiB for inputs and index documents.";
    JSON_TOO_MANY = "json-too-many", "a document has at most 250,000 values",
        "Small values take far more memory than their text. Send fewer values, or send them as one text.";
    JSON_INTEGER_RANGE = "json-integer-range", "integers are between -(2^53-1) and 2^53-1",
        "Many readers keep numbers as doubles, and would round larger integers. Send them as text.";
    JSON_RESERVED_KEY = "json-reserved-key", "no key starts with `$serde_json::private::`",
        "Some readers parse the text under such a key as JSON. Use another key.";
    // Schemas
    SCHEMA_DIALECT = "schema-dialect", "schemas are JSON Schema 2020-12",
        "Remove `$schema`, or set it to `https://json-schema.org/draft/2020-12/schema`, and convert older keywords \
         (`items` as a list is `prefixItems`, `definitions` is `$defs`).";
    SCHEMA_INVALID = "schema-invalid", "schemas satisfy the JSON Schema 2020-12 meta-schema",
        "The message names the keyword. A frequent cause is an older draft: `exclusiveMinimum: true`, `items` as a \
         list, `required: true` on a property.";
    SCHEMA_REF = "schema-ref", "`$ref` points into the same document or to a schema of the bundle",
        "Use `#/$defs/name`, or `schema:NAME` for `schemas/NAME.json`. Nothing is ever fetched, and nested `$id` is \
         refused because it changes what `#` means.";
    SCHEMA_PATTERN = "schema-pattern", "patterns are regular expressions of ECMA-262 that can be matched in linear time",
        "Look-around and back-references need a backtracking engine, which hostile input can hang. Rewrite the \
         pattern without them. A pattern has at most 1024 characters, and at most 48 KiB when it is compiled.";
    SCHEMA_TOO_LARGE = "schema-too-large", "a schema, with all that it refers to, has at most 256 KiB and 10 000 values",
        "Split the tool, or shorten enumerations.";
    SCHEMA_TOO_DEEP = "schema-too-deep", "a schema has at most 64 levels",
        "Move inner schemas to `$defs`.";
    SCHEMA_LOOP = "schema-loop", "a schema refers to itself only for a part of the value",
        "If a schema refers to itself for the same value, for instance with `$ref: \"#\"` in `allOf`, the reference \
         would be followed without end. A recursive reference must be below `properties`, `items` or a similar \
         keyword.";
    SCHEMA_COST = "schema-cost", "a schema can be checked in reasonable time",
        "If each schema refers several times to the next one, the time of a check grows exponentially. Each pattern \
         reads the whole text. For one part of the value, refer to a shared schema once, and use few patterns.";
}
