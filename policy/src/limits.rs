//! Limits on what a call may spend: the table of all limits, and the operator's numbers for them in
//! `[limits]`. The code that spends a resource enforces its limit.

mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use toolward_contract::driver::DriverLimits;
use toolward_contract::json;
use toolward_support::fields::{Kind, did_you_mean};

use crate::error::{self, PolicyError, Refuse as _, quoted};
use crate::fields::{integer, number, table};
pub use table::{CallLimits, LimitName, Limits, own};

/// One limit: what a call gets by default, and the most that it can request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit<T> {
    /// What a call gets if neither contract nor driver requests a value.
    pub default: T,
    /// The most that a contract or driver gets.
    pub maximum: T,
}

impl<T: Ord + Copy> Limit<T> {
    /// A limit whose default is also its maximum.
    pub const fn fixed(value: T) -> Self {
        Self {
            default: value,
            maximum: value,
        }
    }

    /// The same default, with another maximum.
    #[must_use]
    pub const fn up_to(self, maximum: T) -> Self {
        Self { maximum, ..self }
    }

    /// `min(request or default, maximum)`.
    pub fn apply(&self, request: Option<T>) -> T {
        request.unwrap_or(self.default).min(self.maximum)
    }
}

/// The values that a policy can set for a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settable {
    /// Any number.
    Any,
    /// At least 1: each call needs some of it.
    Positive,
    /// None: only an embedder sets the limit.
    Embedder,
    /// None: the host fixes the limit.
    Never,
}

impl LimitName {
    /// The limits that a policy can set, sorted by name.
    pub fn settable_by_policy() -> impl Iterator<Item = LimitName> + Clone {
        let mut names: Vec<LimitName> = Self::ALL
            .iter()
            .copied()
            .filter(|name| matches!(name.settable(), Settable::Any | Settable::Positive))
            .collect();
        names.sort_unstable_by_key(|name| name.as_str());
        names.into_iter()
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<&str> for LimitName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// The operator's numbers for one limit. `None` means the host's value. For a limit that can't be
/// requested, the value is the maximum, or the default if the maximum is `None`.
pub type LimitSetting = Limit<Option<u64>>;

/// The operator's numbers for the limits of calls. A call gets `min(request or default, maximum)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitSettings {
    set: BTreeMap<LimitName, LimitSetting>,
}

impl LimitSettings {
    /// The numbers for a limit.
    pub fn get(&self, name: LimitName) -> LimitSetting {
        self.set.get(&name).copied().unwrap_or_default()
    }

    /// All numbers, in order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (LimitName, LimitSetting)> {
        LimitName::settable_by_policy().filter_map(|name| Some((name, *self.set.get(&name)?)))
    }

    /// Sets the numbers for a limit.
    ///
    /// # Errors
    /// A description of the mistake, for people: a limit that no policy sets, a default above the
    /// maximum, or 0 for a resource that every call needs.
    pub fn set(&mut self, name: LimitName, setting: LimitSetting) -> Result<(), String> {
        let values = [setting.default, setting.maximum];
        match name.settable() {
            Settable::Any => {}
            Settable::Positive if !values.contains(&Some(0)) => {}
            Settable::Positive => {
                return Err(format!("expected `{name}` to be at least 1, found 0"));
            }
            Settable::Embedder | Settable::Never => {
                return Err(format!("no policy sets the limit `{name}`"));
            }
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

    /// Replaces each number here that `later` sets.
    pub(crate) fn layer(mut self, later: &LimitSettings) -> Self {
        for (name, setting) in &later.set {
            let own = self.set.entry(*name).or_default();
            own.default = setting.default.or(own.default);
            own.maximum = setting.maximum.or(own.maximum);
        }
        self
    }

    pub(crate) fn read(field: crate::fields::Field<'_>) -> Result<Self, PolicyError> {
        let mut settings = Self::default();
        for (name, field) in field.named("[limits]").members()? {
            let field = field.named(name);
            let at = field.at.clone();
            let mut settable = LimitName::settable_by_policy();
            let Some(limit) = settable.find(|limit| limit.as_str() == name) else {
                let names = LimitName::settable_by_policy().map(LimitName::as_str);
                let message = format!("expected the name of a limit, found {}", quoted(name));
                let error = error::LIMIT.error(message).at(field.key_at);
                return Err(error.hinted(did_you_mean(name, names, "limits")));
            };
            let setting = match field.kind() {
                Kind::Mapping => table(field, "a limit", |inner| {
                    Ok(LimitSetting {
                        default: number(inner, "default")?,
                        maximum: number(inner, "maximum")?,
                    })
                })?,
                _ => LimitSetting {
                    default: None,
                    maximum: Some(integer(&field)?),
                },
            };
            settings
                .set(limit, setting)
                .map_err(|message| error::LIMIT.error(message).at(at))?;
        }
        Ok(settings)
    }
}

/// Fuel for each second of the default timeout. An interpreter uses about 16 billion per second on
/// a fast machine.
const FUEL_PER_SECOND: u64 = 20_000_000_000;

/// More fuel than an interpreter spends in this time.
pub fn fuel_for(timeout: Duration) -> u64 {
    let fuel = timeout.as_millis() * u128::from(FUEL_PER_SECOND / 1000);
    u64::try_from(fuel).unwrap_or(u64::MAX)
}

impl Limits {
    /// These limits, changed by a policy's numbers. If the policy sets only the default of the
    /// timeout, this number is also the maximum. The default of fuel follows from the default of
    /// the timeout, unless fuel has a separate default.
    #[must_use]
    pub fn with(mut self, settings: &LimitSettings) -> Self {
        let follows = self.fuel.default == fuel_for(self.timeout.default)
            && settings.get(LimitName::Fuel).default.is_none();
        self.adjust(settings);
        let timeout = settings.get(LimitName::Timeout);
        if let (Some(default), None) = (timeout.default, timeout.maximum) {
            self.timeout.maximum = Duration::from_millis(default);
        }
        self.timeout.default = self.timeout.default.min(self.timeout.maximum);
        if follows {
            self.fuel.default = fuel_for(self.timeout.default).max(1);
        }
        self
    }

    /// The limits for the JSON in an output of at most `output_bytes`.
    fn json(&self, output_bytes: u64) -> json::Limits {
        json::Limits {
            bytes: usize::of(output_bytes),
            depth: self.json_depth,
            values: self.json_values,
        }
    }
}

impl CallLimits {
    /// The limits for the calls of one driver. The contract requests `timeout`. `driver` has the
    /// other requests, by the names of the limits.
    pub fn new(limits: &Limits, timeout: Duration, driver: &DriverLimits) -> Self {
        let asked = |name: LimitName| match name {
            LimitName::Memory => driver.memory_mib.map(|mib| mib.saturating_mul(1 << 20)),
            name => driver.iter().find(|(key, _)| name == *key)?.1,
        };
        Self {
            timeout: limits.timeout.apply(Some(timeout)),
            http_timeout: limits
                .http_timeout
                .apply(driver.http_timeout_ms.map(Duration::from_millis)),
            ..Self::of(limits, asked)
        }
    }

    /// These limits, with at most `memory_left` bytes of memory: for a nested call, the memory that
    /// the calling call has left. `whole_bodies` states that the host reads HTTP bodies as a whole.
    /// Such a body is in memory twice, so it gets at most half of the memory.
    #[must_use]
    pub fn within(&self, memory_left: Option<u64>, whole_bodies: bool) -> Self {
        let mut limits = self.clone();
        if let Some(left) = memory_left {
            limits.memory_bytes = limits.memory_bytes.min(left);
        }
        if whole_bodies {
            limits.http_body_bytes = limits.http_body_bytes.min(limits.memory_bytes / 2);
        }
        limits
    }
}

impl Default for CallLimits {
    /// The limits of a driver that requests none.
    fn default() -> Self {
        Self::of(&Limits::default(), |_| None)
    }
}

/// A field of [`Limits`].
trait Field {
    /// Applies a policy's numbers.
    fn adjust(&mut self, setting: LimitSetting);

    /// Its values as numbers in the limit's unit.
    fn range(&self) -> Limit<u64>;
}

impl<T: Number> Field for Limit<T> {
    fn adjust(&mut self, setting: LimitSetting) {
        self.default = setting.default.map_or(self.default, T::of);
        self.maximum = setting.maximum.map_or(self.maximum, T::of);
    }

    fn range(&self) -> Limit<u64> {
        Limit {
            default: self.default.number(),
            maximum: self.maximum.number(),
        }
    }
}

impl<T: Number> Field for T {
    fn adjust(&mut self, setting: LimitSetting) {
        let value = setting.maximum.or(setting.default);
        *self = value.map_or(*self, T::of);
    }

    fn range(&self) -> Limit<u64> {
        Limit::fixed(self.number())
    }
}

/// The value of a limit: a number, or a time in milliseconds.
trait Number: Copy {
    /// The nearest value to this number.
    fn of(number: u64) -> Self;

    /// The value as a number.
    fn number(self) -> u64;
}

impl Number for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(self) -> u64 {
        self
    }
}

/// `None` means that the host chooses the value. As a number, `None` is 0.
impl Number for Option<u64> {
    fn of(number: u64) -> Self {
        Some(number)
    }

    fn number(self) -> u64 {
        self.unwrap_or_default()
    }
}

impl Number for u32 {
    fn of(number: u64) -> Self {
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for usize {
    fn of(number: u64) -> Self {
        usize::try_from(number).unwrap_or(usize::MAX)
    }

    fn number(self) -> u64 {
        self as u64
    }
}

impl Number for Duration {
    fn of(number: u64) -> Self {
        Duration::from_millis(number)
    }

    fn number(self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
