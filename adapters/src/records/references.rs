//! How records refer to each other, and how they write times.

use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toolward_host::{DriverFacts, ToolFacts};

/// The driver that calls go to, if one may run; else the first.
pub(crate) fn serving(info: &ToolFacts) -> Option<&DriverFacts> {
    let open = info.drivers.iter().find(|driver| driver.is_open());
    open.or(info.drivers.first())
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

/// RFC 3339, in UTC.
pub(crate) fn timestamp(at: SystemTime) -> String {
    let text = OffsetDateTime::from(at).format(&Rfc3339);
    // A year beyond 9999 has no such form.
    text.unwrap_or_else(|_| "1970-01-01T00:00:00Z".to_owned())
}

/// The time within a UUIDv7, to the millisecond.
pub(crate) fn time_of(uuid: &str) -> Option<SystemTime> {
    let digits: String = uuid.chars().filter(|c| *c != '-').take(12).collect();
    let milliseconds = u64::from_str_radix(&digits, 16).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds))
}

/// Whole milliseconds.
pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

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
