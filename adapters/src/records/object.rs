//! How records are written: objects whose members stand in the order of their JSON Schemas.

/// The version of Agent Tool that all records follow.
pub(crate) const VERSION: &str = "0.2.0";

/// A JSON object. A member after `?` is left out if it is `None`.
macro_rules! object {
    (@= $object:ident, $name:ident, $value:expr) => {
        $object.insert(stringify!($name).to_owned(), serde_json::json!($value));
    };
    (@? $object:ident, $name:ident, $value:expr) => {
        if let Some(value) = $value {
            $object.insert(stringify!($name).to_owned(), serde_json::json!(value));
        }
    };
    ($($name:ident $kind:tt $value:expr;)*) => {{
        let mut object = serde_json::Map::new();
        $($crate::records::object::object!(@$kind object, $name, $value);)*
        serde_json::Value::Object(object)
    }};
}

/// A record: an object with the version that it follows.
macro_rules! record {
    ($($members:tt)*) => {
        $crate::records::object::object! {
            schema_version = $crate::records::object::VERSION;
            $($members)*
        }
    };
}

pub(crate) use {object, record};
