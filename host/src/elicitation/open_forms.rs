//! The forms of drivers of `kind: form` that are open: one for each principal, so that a
//! caller can't wear a person down with calls beside each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a person has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// Principals with an open form: bounds the memory that this takes.
const MAX_PRINCIPALS: usize = 4096;

/// Invocations by their principals, and when each form closes.
#[derive(Debug, Default)]
pub(crate) struct OpenForms {
    open: Mutex<HashMap<String, (String, Instant)>>,
}

impl OpenForms {
    /// The form of an invocation, which may be open or opened later.
    pub(crate) fn opened(forms: &Arc<Self>, principal: &str, invocation: &str) -> OpenForm {
        OpenForm {
            forms: Some(forms.clone()),
            principal: principal.to_owned(),
            invocation: invocation.to_owned(),
        }
    }

    /// Opens the form of an invocation.
    ///
    /// # Errors
    /// How long another one may stay open.
    pub(crate) fn open(&self, principal: &str, invocation: &str) -> Result<(), Duration> {
        let now = Instant::now();
        let mut open = self.lock();
        open.retain(|_, (_, until)| *until > now);
        match open.get(principal) {
            Some((other, until)) if other != invocation => {
                return Err(until.saturating_duration_since(now));
            }
            None if open.len() >= MAX_PRINCIPALS => return Err(ANSWER_TIMEOUT),
            _ => {}
        }
        let until = now.checked_add(ANSWER_TIMEOUT).unwrap_or(now);
        open.insert(principal.to_owned(), (invocation.to_owned(), until));
        Ok(())
    }

    /// Closes the form of an invocation. Returns whether it was open.
    pub(crate) fn close(&self, principal: &str, invocation: &str) -> bool {
        let now = Instant::now();
        let mut open = self.lock();
        match open.get(principal) {
            Some((own, until)) if own == invocation => {
                let in_time = *until > now;
                open.remove(principal);
                in_time
            }
            _ => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (String, Instant)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the time of all open forms pass.
    #[cfg(test)]
    fn expire(&self) {
        let now = Instant::now();
        self.lock().values_mut().for_each(|(_, until)| *until = now);
    }
}

/// The form of one call. Dropping it closes the form: however a call ends that does not hand its
/// question to its caller, its person is not asked any more.
#[derive(Debug)]
pub(crate) struct OpenForm {
    /// `None` once it is to stay open.
    forms: Option<Arc<OpenForms>>,
    principal: String,
    invocation: String,
}

impl OpenForm {
    /// Leaves the form open: its question goes to the caller.
    pub(crate) fn keep(mut self) {
        self.forms = None;
    }
}

impl Drop for OpenForm {
    fn drop(&mut self) {
        if let Some(forms) = &self.forms {
            forms.close(&self.principal, &self.invocation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_one_open_form_and_others_have_theirs() {
        let forms = OpenForms::default();
        assert_eq!(forms.open("ada", "1"), Ok(()));
        assert!(forms.open("ada", "2").is_err());
        assert_eq!(forms.open("ada", "1"), Ok(()), "its next round");
        assert_eq!(forms.open("eve", "3"), Ok(()));
        assert!(!forms.close("eve", "1"));
        assert!(forms.close("ada", "1"));
        assert!(!forms.close("ada", "1"), "once");
        assert_eq!(forms.open("ada", "2"), Ok(()));
    }

    #[test]
    fn a_form_that_nobody_answers_closes() {
        let forms = OpenForms::default();
        assert_eq!(forms.open("ada", "1"), Ok(()));
        forms.expire();
        assert!(!forms.close("ada", "1"));
        assert_eq!(forms.open("ada", "1"), Ok(()));
        forms.expire();
        assert_eq!(forms.open("ada", "2"), Ok(()));
    }

    #[test]
    fn however_many_principals_ask_memory_is_bounded() {
        let forms = OpenForms::default();
        for number in 0..MAX_PRINCIPALS {
            assert_eq!(forms.open(&format!("p{number}"), "1"), Ok(()));
        }
        assert!(forms.open("one more", "1").is_err());
        assert_eq!(forms.open("p0", "1"), Ok(()));
    }
}
