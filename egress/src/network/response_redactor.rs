//! Redacts secret values from one response, from the moment that its origin may know
//! one.

use std::sync::Arc;

use bytes::Bytes;

use crate::call_state::Slot;
use crate::error::{Denied, Rule};
use crate::origin::Origin;
use crate::secret::scrub::{Patterns, Scrubber};

/// The redactor of one response.
#[derive(Debug)]
pub(crate) struct ResponseRedactor {
    scrubber: Option<Scrubber>,
    /// How many values the call had loaded when the patterns were made.
    count: usize,
    /// Why a value could not be found in the body.
    obscure: Option<&'static str>,
}

impl ResponseRedactor {
    /// # Errors
    /// [`Rule::SecretResponse`]: `origin` may know a value, and it could hide here.
    pub(crate) fn of(
        slot: &Slot,
        origin: &Origin,
        obscure: Option<&'static str>,
    ) -> Result<ResponseRedactor, Denied> {
        let mut redactor = ResponseRedactor {
            scrubber: None,
            count: 0,
            obscure,
        };
        redactor.renew(slot, origin)?;
        Ok(redactor)
    }

    /// Looks whether the origin may know a value since: one that was not there
    /// before may have gone out with another request while this response comes.
    ///
    /// # Errors
    /// As [`ResponseRedactor::of`].
    pub(crate) fn renew(&mut self, slot: &Slot, origin: &Origin) -> Result<(), Denied> {
        let secrets = &slot.call().secrets;
        let count = secrets.count();
        if count == self.count {
            return Ok(());
        }
        self.count = count;
        let Some(patterns) = secrets.patterns(origin) else {
            return Ok(());
        };
        if let Some(header) = self.obscure {
            return Err(Denied::new(Rule::SecretResponse, header));
        }
        match &mut self.scrubber {
            // The value is another origin's.
            Some(scrubber) if Arc::ptr_eq(scrubber.patterns(), &patterns) => {}
            Some(scrubber) => scrubber.look_for(patterns),
            None => self.scrubber = Some(Scrubber::new(patterns)),
        }
        Ok(())
    }

    pub(crate) fn is_on(&self) -> bool {
        self.scrubber.is_some()
    }

    pub(crate) fn patterns(&self) -> Option<&Arc<Patterns>> {
        self.scrubber.as_ref().map(Scrubber::patterns)
    }

    /// What of the body can be passed on; may be empty.
    pub(crate) fn push(&mut self, data: Bytes) -> Bytes {
        match &mut self.scrubber {
            Some(scrubber) => scrubber.push(data),
            None => data,
        }
    }

    /// What was held back, at the body's end.
    pub(crate) fn finish(&mut self) -> Bytes {
        let rest = self.scrubber.as_mut().map(Scrubber::finish);
        rest.unwrap_or_default()
    }
}
