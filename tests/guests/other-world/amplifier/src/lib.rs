//! A tool for Amplifier: adds two numbers, and fails in each of the ways in which one can.

wit_bindgen::generate!({ world: "module" });

use exports::amplifier::modules::tool::Guest;
use serde_json::{Value, json};

struct Component;

export!(Component);

impl Guest for Component {
    fn get_spec() -> Vec<u8> {
        let spec = json!({
            "name": "sum",
            "description": "Adds two numbers.",
            "parameters": {
                "type": "object",
                "properties": { "a": { "type": "number" }, "b": { "type": "number" } },
                "required": ["a", "b"],
            },
        });
        spec.to_string().into_bytes()
    }

    fn execute(input: Vec<u8>) -> Result<Vec<u8>, String> {
        let input: Value = serde_json::from_slice(&input).map_err(|error| error.to_string())?;
        let number = |name: &str| input.get(name).and_then(Value::as_f64);
        let (a, b) = number("a").zip(number("b")).ok_or("a and b are numbers")?;
        if b < 0.0 {
            return Err("this tool is broken".to_owned());
        }
        let result = match a < 0.0 {
            true => json!({
                "success": false,
                "error": { "type": "range", "message": "a is negative" },
            }),
            false => json!({ "success": true, "output": { "sum": a + b } }),
        };
        Ok(result.to_string().into_bytes())
    }
}
