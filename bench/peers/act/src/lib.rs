//! Greets somebody by name, as the driver does that `toolward new` writes.

use act_sdk::prelude::*;

#[act_component]
mod component {
    use super::*;

    #[act_tool(description = "Greets somebody by name", read_only)]
    fn greet(name: String) -> ActResult<String> {
        Ok(format!("Hello, {name}!"))
    }
}
