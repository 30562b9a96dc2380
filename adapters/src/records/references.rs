//! The parts that all records have: objects with members in the order of their JSON Schemas,
//! references, and times.

use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use toolward_host::{DriverFacts, ToolFacts};

/// Returns the driver to which calls go, if one may run; otherwise the first driver.
pub(crate) fn serving(info: &ToolFacts) -> Option<&DriverFacts> {
    let open = info.drivers.iter().find(|driver| driver.is_open());
    open.or(info.drivers.first()).map(|driver| &**driver)
}

pub(crate) fn interface(info: &ToolFacts) -> String {
    format!("interface:{}", info.contract.major_id())
}

pub(crate) fn execution_profile(info: &ToolFacts, driver: &DriverFacts) -> String {
    format!("execution:{}/{}", info.contract.major_id(), driver.id)
}

pub(crate) fn permission_profile(info: &ToolFacts, driver: &DriverFacts) -> String {
    format!("permission:{}/{}", info.contract.major_id(), driver.id)
}

/// Writes a time as RFC 3339, in UTC.
pub(crate) fn timestamp(at: SystemTime) -> String {
    let text = OffsetDateTime::from(at).format(&Rfc3339);
    // A year after 9999 can't be written in this form.
    text.unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

/// Returns the time in a UUIDv7, to the millisecond.
pub(crate) fn time_of(uuid: &str) -> Option<SystemTime> {
    let digits: String = uuid.chars().filter(|c| *c != '-').take(12).collect();
    let milliseconds = u64::from_str_radix(&digits, 16).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

/// Returns whole milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The version of Agent Tool that all records follow.
pub(crate) const VERSION: &str = "0.2.0";

/// Returns an object that has members; `None` for an empty one.
pub(crate) fn filled(object: serde_json::Value) -> Option<serde_json::Value> {
    let members = object.as_object().is_some_and(|all| !all.is_empty());
    members.then_some(object)
}

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
        $($crate::records::references::object!(@$kind object, $name, $value);)*
        serde_json::Value::Object(object)
    }};
}

/// A record: an object with the version of Agent Tool that it follows.
macro_rules! record {
    ($($members:tt)*) => {
        $crate::records::references::object! {
            schema_version = $crate::records::references::VERSION;
            $($members)*
        }
    };
}

pub(crate) use {object, record};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_an_invocation_is_in_its_id() {
        let at = time_of("0192f0d4-5c00-7abc-8def-0123456789ab").unwrap();
        assert_eq!(timestamp(at), "2024-11-03T07:01:42.016Z");
        assert_eq!(time_of("no uuid"), None);
    }
}
