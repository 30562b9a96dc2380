//! A bucket in memory that behaves like a bucket of the host.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::keyvalue::bindings::wasi::keyvalue::store::{Error, KeyResponse};

/// The keys of one page: few, so that tests see several pages.
const PAGE: usize = 2;

#[derive(Clone, Debug, Default)]
pub(crate) struct TestBucket {
    pairs: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    read_only: bool,
}

impl TestBucket {
    pub(crate) fn read_only<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let pairs = pairs
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_vec()))
            .collect();
        TestBucket {
            pairs: Rc::new(RefCell::new(pairs)),
            read_only: true,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.pairs.borrow().get(key).cloned()
    }

    pub(crate) fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.writable()?;
        self.pairs
            .borrow_mut()
            .insert(key.to_owned(), value.to_vec());
        Ok(())
    }

    pub(crate) fn delete(&self, key: &str) -> Result<(), Error> {
        self.writable()?;
        self.pairs.borrow_mut().remove(key);
        Ok(())
    }

    pub(crate) fn increment(&self, key: &str, delta: u64) -> Result<u64, Error> {
        let number = match self.get(key) {
            None => Some(0),
            Some(value) => std::str::from_utf8(&value)
                .ok()
                .and_then(|text| text.parse::<u64>().ok()),
        };
        let sum = number
            .and_then(|number| number.checked_add(delta))
            .ok_or_else(|| Error::Other("no number, or a sum past 64 bits".to_owned()))?;
        self.set(key, sum.to_string().as_bytes())?;
        Ok(sum)
    }

    pub(crate) fn page(&self, cursor: Option<u64>) -> KeyResponse {
        let from = usize::try_from(cursor.unwrap_or(0)).unwrap_or(usize::MAX);
        let pairs = self.pairs.borrow();
        let next = from.saturating_add(PAGE);
        KeyResponse {
            keys: pairs.keys().skip(from).take(PAGE).cloned().collect(),
            cursor: (next < pairs.len()).then_some(next as u64),
        }
    }

    fn writable(&self) -> Result<(), Error> {
        if self.read_only {
            return Err(Error::AccessDenied);
        }
        Ok(())
    }
}
