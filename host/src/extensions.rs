//! The values that features attach to a call, by type. A feature that a call does not use costs the
//! call nothing, and features don't know of each other.

use std::any::Any;

/// The extensions of one call. Each value takes one allocation.
#[derive(Default)]
pub(crate) struct Extensions(Option<Box<Attached<dyn Any + Send + Sync>>>);

struct Attached<T: ?Sized> {
    next: Extensions,
    value: T,
}

impl Extensions {
    /// Attaches a value. The value hides an earlier value of the same type.
    pub(crate) fn insert<T: Any + Send + Sync>(&mut self, value: T) {
        let next = std::mem::take(self);
        self.0 = Some(Box::new(Attached {
            next,
            value: Some(value),
        }));
    }

    pub(crate) fn get<T: Any>(&self) -> Option<&T> {
        let attached = self.0.as_deref()?;
        match attached.value.downcast_ref::<Option<T>>() {
            Some(Some(value)) => Some(value),
            _ => attached.next.get(),
        }
    }

    /// Detaches a value.
    pub(crate) fn take<T: Any>(&mut self) -> Option<T> {
        let Attached { next, value } = self.0.as_deref_mut()?;
        match value.downcast_mut::<Option<T>>() {
            Some(value) if value.is_some() => value.take(),
            _ => next.take(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_types() {
        let mut extensions = Extensions::default();
        assert_eq!(extensions.get::<u8>(), None);
        extensions.insert(1_u8);
        extensions.insert("text");
        extensions.insert(2_u8);
        assert_eq!(extensions.get::<u8>(), Some(&2));
        assert_eq!(extensions.get::<&str>(), Some(&"text"));
        assert_eq!(extensions.get::<u16>(), None);
        assert_eq!(extensions.take::<u8>(), Some(2));
        assert_eq!(extensions.take::<u8>(), Some(1), "the earlier one");
        assert_eq!(extensions.take::<u8>(), None);
    }
}
