//! What is found out while the templates of a driver are read: the secrets that they declare, and the form they have.

use std::collections::BTreeSet;

use super::Template;
use crate::capability::{Capability, Class};
use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::source::Field;

/// What the templates of a driver have in common.
#[derive(Default)]
pub(in crate::driver) struct Reading {
    /// Secrets that placeholders of AIP-31's spelling declare.
    secrets: BTreeSet<String>,
    /// What of the form of version 0.1 was used, and where it was used first.
    old: Vec<&'static str>,
    old_at: Option<Position>,
}

impl Reading {
    /// Reads a template that may hold secrets.
    pub(in crate::driver) fn template(
        &mut self,
        text: &str,
        field: &Field<'_>,
        report: &mut Report<'_>,
    ) -> Option<Template> {
        match Template::read(text) {
            Ok((template, old)) => {
                if old {
                    self.old("`${secret.SLUG}`", field.at);
                } else {
                    self.secrets.extend(template.secrets().map(str::to_owned));
                }
                Some(template)
            }
            Err(message) => {
                report.add(&codes::HTTP_TEMPLATE_INVALID, field.at, message);
                None
            }
        }
    }

    /// Notes a use of the form of version 0.1.
    pub(in crate::driver) fn old(&mut self, what: &'static str, at: Position) {
        if !self.old.contains(&what) {
            self.old.push(what);
        }
        self.old_at.get_or_insert(at);
    }

    /// Warns once of the form of version 0.1.
    pub(in crate::driver) fn warn_of_old_form(&self, report: &mut Report<'_>) {
        let Some(at) = self.old_at else {
            return;
        };
        let message = format!(
            "expected the form of AIP-31, found {}: the next version reads that form alone",
            self.old.join(", ")
        );
        report.add(&codes::HTTP_FORMAT_OLD, at, message);
    }

    /// The secrets that placeholders declare.
    pub(in crate::driver) fn secrets(&self) -> impl Iterator<Item = Capability> {
        let slugs = self.secrets.iter();
        slugs.filter_map(|slug| Capability::of(Class::Secret, slug).ok())
    }
}
