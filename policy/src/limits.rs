//! `[limits]`: the operator's numbers by name. What they bound, and what holds
//! where the operator says nothing, is the host's.

use std::collections::BTreeMap;

/// What the operator says about one limit. `None`: the host's own value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitSetting {
    /// What a call gets when neither contract nor driver asks for a value.
    pub default: Option<u64>,
    /// The most that a call may ask for; the value itself for a limit that can't be
    /// asked for.
    pub maximum: Option<u64>,
}

/// The operator's numbers for the limits that a call meets
/// (`min(request or default, maximum)`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSettings {
    set: BTreeMap<&'static str, LimitSetting>,
}

/// The limits that a policy can set, and whether 0 is a value: it is none for
/// what every call needs.
const NAMES: &[(&str, bool)] = &[
    ("bucket_bytes", true),
    ("bucket_keys", true),
    ("component_bytes", false),
    ("concurrency", false),
    ("concurrency_per_principal", false),
    ("concurrency_per_publisher", false),
    ("concurrency_per_tool", false),
    ("egress_bytes", true),
    ("fuel", false),
    ("http_body_bytes", true),
    ("http_requests", true),
    ("http_requests_total", true),
    ("http_timeout_ms", false),
    ("input_bytes", false),
    ("json_depth", false),
    ("json_values", false),
    ("log_bytes", true),
    ("log_records", true),
    ("memory_bytes", false),
    ("nested_calls", true),
    ("nested_depth", true),
    ("open_files", true),
    ("output_bytes", false),
    ("queue", true),
    ("resources", false),
    ("stdio_bytes", true),
    ("table_elements", false),
    ("timeout_ms", false),
    ("workspace_bytes", true),
    ("workspace_files", true),
];

impl LimitSettings {
    /// The names that a policy can set, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// What is said about a limit; nothing about an unknown one.
    #[must_use]
    pub fn get(&self, name: &str) -> LimitSetting {
        self.set.get(name).copied().unwrap_or_default()
    }

    /// All that is said.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, LimitSetting)> {
        self.set.iter().map(|(name, setting)| (*name, *setting))
    }

    /// Says something about a limit.
    ///
    /// # Errors
    /// What is wrong, for people: an unknown name, a default above the maximum,
    /// 0 for what every call needs.
    pub fn set(&mut self, name: &str, setting: LimitSetting) -> Result<(), String> {
        let Some((name, zero)) = NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(format!("expected the name of a limit, found {name:?}"));
        };
        let values = [setting.default, setting.maximum];
        if !zero && values.contains(&Some(0)) {
            return Err(format!("expected `{name}` to be at least 1, found 0"));
        }
        if let (Some(default), Some(maximum)) = (setting.default, setting.maximum)
            && default > maximum
        {
            return Err(format!(
                "expected the default of `{name}` to be at most its maximum {maximum}, \
                 found {default}"
            ));
        }
        self.set.insert(name, setting);
        Ok(())
    }

    /// The numbers of `later` win, one by one.
    pub(crate) fn layer(mut self, later: &LimitSettings) -> Self {
        for (name, setting) in &later.set {
            let own = self.set.entry(name).or_default();
            own.default = setting.default.or(own.default);
            own.maximum = setting.maximum.or(own.maximum);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_values_that_end_every_call_are_refused() {
        let mut settings = LimitSettings::default();
        let maximum = |maximum| LimitSetting {
            default: None,
            maximum: Some(maximum),
        };
        assert!(settings.set("fule", maximum(1)).is_err());
        assert!(settings.set("fuel", maximum(0)).is_err());
        assert!(settings.set("http_requests", maximum(0)).is_ok());
        let crossed = LimitSetting {
            default: Some(2),
            maximum: Some(1),
        };
        assert!(settings.set("fuel", crossed).is_err());
        assert_eq!(settings.get("fuel"), LimitSetting::default());
    }

    #[test]
    fn names_are_sorted_and_unique() {
        let names: Vec<_> = LimitSettings::names().collect();
        assert!(names.is_sorted());
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
