//! Compiles the drivers of a release as it is installed, so that the first call does not
//! wait for it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use toolward_bundle::content::Content;
use toolward_host::Broker;
use toolward_signing::verify::{Bundle, Verified};

use crate::report::Report;

/// How long the drivers of one bundle are compiled ahead. Those that are left are
/// compiled at their first call.
const BUNDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Compiles the drivers of a bundle into the broker's cache. What fails is reported as a
/// warning, and once more by the call that needs it.
pub(super) fn compile(bundle: Verified<Bundle>, broker: &Broker, report: &dyn Report) {
    // Without a cache nothing would be left of it.
    if broker.directory().is_none() {
        return;
    }
    let Ok(content) = Content::from_verified(bundle) else {
        return;
    };
    let drivers = content.drivers.iter();
    let components: BTreeMap<_, _> = drivers
        .filter_map(|entry| {
            let component = entry.component.as_ref()?;
            Some((component.digest, (&entry.driver.id, component)))
        })
        .collect();
    if let Err(error) = broker.start() {
        report.warning(&error.to_string());
        return;
    }
    let started = Instant::now();
    for (id, component) in components.into_values() {
        if started.elapsed() > BUNDLE_TIMEOUT {
            let rest = format!("{id} and later drivers are compiled at their first call");
            report.note(&rest);
            return;
        }
        let _progress = report.begin(&format!("compiling {id}"));
        if let Err(error) = broker.compile(&component.bytes) {
            report.warning(&format!("{id}: {error}"));
        }
    }
}
