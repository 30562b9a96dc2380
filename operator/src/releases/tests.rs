use std::sync::Mutex;

use toolward_host::CompileReason;

use super::*;
use crate::{Progress, Silent};

#[derive(Debug, Default)]
struct Recorded {
    notes: Mutex<Vec<String>>,
    warnings: Mutex<Vec<String>>,
}

impl Report for Recorded {
    fn warning(&self, message: &str) {
        self.warnings.lock().unwrap().push(message.to_owned());
    }

    fn note(&self, message: &str) {
        self.notes.lock().unwrap().push(message.to_owned());
    }

    fn begin(&self, _: &str) -> Box<dyn Progress> {
        Box::new(Silent)
    }
}

#[test]
fn what_is_over_the_budget_is_named_once_and_the_rest_is_compiled() {
    let components = [("a", "large"), ("b", "small"), ("c", "bad"), ("d", "large")];
    let components = components.map(|(id, wasm)| (id, wasm.as_bytes()));
    let (heard, mut compiled) = (Recorded::default(), Vec::new());
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
    assert_eq!(
        std::mem::take(&mut *heard.warnings.lock().unwrap()),
        ["c: not valid"]
    );
    let notes = std::mem::take(&mut *heard.notes.lock().unwrap());
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with(": a, d"), "{notes:?}");
}

#[test]
fn a_bundle_within_its_budget_is_not_talked_about() {
    let heard = Recorded::default();
    let components = [("a", &b"small"[..])].into_iter();
    compile_each(components, |_| Ok(Ahead::Compiled), &heard);
    assert!(
        std::mem::take(&mut *heard.notes.lock().unwrap()).is_empty()
            && std::mem::take(&mut *heard.warnings.lock().unwrap()).is_empty()
    );
}
