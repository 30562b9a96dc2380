//! Compiles the drivers of a release after it was installed, so that the first call does
//! not wait for it. Whatever ends this early, the release stays installed.

use std::collections::BTreeMap;
use std::time::Duration;

use toolward_bundle::content::Content;
use toolward_bundle::text::list;
use toolward_host::{Ahead, Broker, CompileCost, CompileError};
use toolward_signing::verify::{Bundle, Verified};

use crate::report::Report;

/// What the drivers of one bundle may cost together: a bundle of many drivers neither
/// keeps its operator waiting nor takes the cache from all others.
const BUNDLE_BUDGET: CompileCost = CompileCost {
    processor: Duration::from_secs(300),
    artifact_bytes: 512 << 20,
};

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
            Some((component.digest, (entry.driver.id.to_string(), component)))
        })
        .collect();
    if let Err(error) = broker.start() {
        report.warning(&error.to_string());
        return;
    }
    let mut left = BUNDLE_BUDGET;
    let components = components.values();
    compile_each(
        components.map(|(id, component)| (id.as_str(), &*component.bytes)),
        |wasm| broker.compile_within(wasm, &mut left),
        report,
    );
}

fn compile_each<'a>(
    components: impl Iterator<Item = (&'a str, &'a [u8])>,
    mut compile: impl FnMut(&[u8]) -> Result<Ahead, CompileError>,
    report: &dyn Report,
) {
    let mut later = Vec::new();
    for (id, wasm) in components {
        let _progress = report.begin(&format!("compiling {id}"));
        match compile(wasm) {
            Ok(Ahead::Compiled) => {}
            Ok(Ahead::OverBudget) => later.push(id),
            Err(error) => report.warning(&format!("{id}: {error}")),
        }
    }
    if !later.is_empty() {
        let drivers = list(&later);
        report.note(&format!(
            "to be compiled at their first call, since a bundle may not cost more: {drivers}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use toolward_host::CompileReason;

    use super::*;
    use crate::report::{Progress, Silent};

    #[derive(Default)]
    struct Heard {
        notes: RefCell<Vec<String>>,
        warnings: RefCell<Vec<String>>,
    }

    impl Report for Heard {
        fn warning(&self, message: &str) {
            self.warnings.borrow_mut().push(message.to_owned());
        }

        fn note(&self, message: &str) {
            self.notes.borrow_mut().push(message.to_owned());
        }

        fn begin(&self, _: &str) -> Box<dyn Progress + Send> {
            Box::new(Silent)
        }
    }

    #[test]
    fn what_is_over_the_budget_is_named_once_and_the_rest_is_compiled() {
        let components = [("a", "large"), ("b", "small"), ("c", "bad"), ("d", "large")];
        let components = components.map(|(id, wasm)| (id, wasm.as_bytes()));
        let (heard, mut compiled) = (Heard::default(), Vec::new());
        let compile = |wasm: &[u8]| match wasm {
            b"large" => Ok(Ahead::OverBudget),
            b"bad" => Err(CompileError::new(CompileReason::Invalid, "not valid")),
            _ => {
                compiled.push(wasm.to_owned());
                Ok(Ahead::Compiled)
            }
        };
        compile_each(components.into_iter(), compile, &heard);
        assert_eq!(compiled, [b"small"]);
        assert_eq!(heard.warnings.take(), ["c: not valid"]);
        let notes = heard.notes.take();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].ends_with(": a, d"), "{notes:?}");
    }

    #[test]
    fn a_bundle_within_its_budget_is_not_talked_about() {
        let heard = Heard::default();
        let components = [("a", &b"small"[..])].into_iter();
        compile_each(components, |_| Ok(Ahead::Compiled), &heard);
        assert!(heard.notes.take().is_empty() && heard.warnings.take().is_empty());
    }
}
