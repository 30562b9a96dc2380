//! Drivers of `kind: form`, and the contracts that they may implement.

use toolward_contract::NoScope;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::tool::Tool;

fn tool(outputs: &str) -> Tool {
    let source = format!(
        "---\nname: Sample\nid: sample.tool\ndescription: Asks.\nversion: 1.0.0\n\
         inputs: {{ type: object }}\noutputs: {outputs}\nrequires: {{ user: [form] }}\n---\n"
    );
    Tool::parse("TOOL.md", &source, &NoScope)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

fn driver(more: &str) -> Driver {
    let source = format!(
        "---\nname: Sample\nid: sample-form\ndescription: Asks.\nversion: 1.0.0\nkind: form\n\
         implements:\n  - tool: sample.tool\n    version: 1.x\n{more}---\n"
    );
    Driver::parse("DRIVER.md", &source)
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

fn codes(outputs: &str, more: &str) -> Vec<&'static str> {
    let found = driver(more).check_against(&tool(outputs), "DRIVER.md");
    found.iter().map(|one| one.code).collect()
}

#[test]
fn a_flat_contract_is_a_form() {
    let driver = driver("");
    assert_eq!(driver.kind, DriverKind::Form);
    let flat = "{ type: object, properties: { title: { type: string }, sure: { type: boolean }, \
                size: { type: string, enum: [s, l] }, many: { type: array, items: { type: string, enum: [a, b] } } }, \
                required: [title] }";
    assert_eq!(codes(flat, ""), [""; 0]);
    let tool = tool(flat);
    let schema = driver.form(&tool, &driver.implements[0]).unwrap();
    assert_eq!(&schema, tool.outputs.value());
}

#[test]
fn what_no_person_is_asked_is_no_form() {
    let fields: Vec<String> = (0..33)
        .map(|n| format!("f{n}: {{ type: string }}"))
        .collect();
    let many = format!(
        "{{ type: object, properties: {{ {} }} }}",
        fields.join(", ")
    );
    let deep = "{ type: object, properties: { a: { type: object, properties: { b: { type: string } } } } }";
    for outputs in [
        &many,
        deep,
        "{ type: object }",
        "{}",
        "{ type: string }",
        "{ type: object, properties: { password: { type: string } } }",
        "{ type: object, properties: { x: { type: string, title: Your API key } } }",
        "{ type: object, properties: { x: { type: string, description: the recovery code } } }",
        "{ type: object, properties: { x: { type: string, pattern: '^a$' } } }",
        "{ type: object, properties: { x: { type: string, x-sensitive: true } } }",
        "{ type: object, properties: { x: { $ref: '#/$defs/x' } }, $defs: { x: { type: string } } }",
        "{ type: object, properties: { x: { type: array, items: { type: string } } } }",
        "{ type: object, properties: { x: { type: string } }, additionalProperties: true }",
        "{ type: object, properties: { x: { type: string } }, minProperties: 1 }",
        "{ type: object, properties: { \"x\\u202ey\": { type: string } } }",
        "{ oneOf: [{ type: object, properties: { x: { type: string } } }] }",
    ] {
        assert_eq!(codes(outputs, ""), ["form-invalid"], "{outputs}");
    }
}

#[test]
fn a_person_is_not_asked_for_what_the_driver_does_not_give() {
    let outputs = "{ type: object, properties: { a: { type: string }, b: { type: object } } }";
    assert_eq!(codes(outputs, ""), ["form-invalid"]);
    let narrowed = "    schema_narrowing: { drop_outputs: [b] }\n";
    assert_eq!(codes(outputs, narrowed), [""; 0]);
    let driver = driver(narrowed);
    let form = driver.form(&tool(outputs), &driver.implements[0]).unwrap();
    assert_eq!(form["properties"].as_object().unwrap().len(), 1);
    let all = "    schema_narrowing: { drop_outputs: [a, b] }\n";
    assert_eq!(codes(outputs, all), ["form-invalid"]);
}

#[test]
fn a_form_has_neither_code_nor_request() {
    let parsed = |more: &str| {
        let source = format!(
            "---\nname: Sample\nid: sample-form\ndescription: Asks.\nversion: 1.0.0\nkind: form\n{more}\
             implements:\n  - tool: sample.tool\n    version: 1.x\n---\n"
        );
        Driver::parse("DRIVER.md", &source).into_result().is_ok()
    };
    assert!(parsed(""));
    for field in [
        "component: driver.wasm\n",
        "base_url: https://a.example\n",
        "default_method: GET\n",
    ] {
        assert!(!parsed(field), "{field}");
    }
}
