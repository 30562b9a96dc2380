//! Functions of its own: one for each type, and those that misbehave.

mod bindings {
    wit_bindgen::generate!({ world: "functions" });
}

use bindings::exports::tests::functions::{echo, endings, large};

struct Component;

bindings::export!(Component with_types_in bindings);

impl bindings::Guest for Component {
    fn read_file(path: String) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }
}

/// Gives back what it gets.
macro_rules! echoes {
    ($($name:ident: $value:ty),* $(,)?) => {
        impl echo::Guest for Component {
            $(fn $name(value: $value) -> $value {
                value
            })*
        }
    };
}

echoes! {
    echo_bool: bool,
    echo_u8: u8,
    echo_s16: i16,
    echo_u64: u64,
    echo_s64: i64,
    echo_f32: f32,
    echo_f64: f64,
    echo_char: char,
    echo_string: String,
    echo_bytes: Vec<u8>,
    echo_list: Vec<String>,
    echo_tuple: (u8, String),
    echo_record: echo::Point,
    echo_enum: echo::Colour,
    echo_flags: echo::Rights,
    echo_variant: echo::Shape,
    echo_option: Option<Option<u32>>,
    echo_results: Vec<Result<u32, String>>,
}

impl endings::Guest for Component {
    fn divide(a: i32, b: i32) -> Result<i32, String> {
        a.checked_div(b)
            .ok_or_else(|| format!("{a} is not divided by {b}"))
    }

    fn look_up(key: String) -> Result<u32, endings::LookupError> {
        match key.as_str() {
            "answer" => Ok(42),
            "secret" => Err(endings::LookupError::Denied),
            _ => Err(endings::LookupError::NotFound(key)),
        }
    }

    fn plain() -> Result<(), endings::PlainError> {
        Err(endings::PlainError::Busy)
    }

    fn nothing() {}

    fn trap() {
        panic!("as told");
    }

    #[expect(clippy::empty_loop, reason = "what a hostile driver does")]
    fn spin() {
        loop {}
    }
}

impl large::Guest for Component {
    fn list_of_flags(count: u32) -> Vec<large::Many> {
        vec![large::Many::all(); count as usize]
    }

    fn list_of_records(count: u32) -> Vec<large::Small> {
        vec![large::Small { a: 1 }; count as usize]
    }

    fn list_of_lists(count: u32) -> Vec<Vec<u8>> {
        vec![vec![1]; count as usize]
    }

    fn bytes(count: u32) -> Vec<u8> {
        vec![7; count as usize]
    }

    fn text(count: u32) -> String {
        "x".repeat(count as usize)
    }
}
