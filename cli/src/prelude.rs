//! What almost every command uses.

pub(crate) use clap::Args;
pub(crate) use serde_json::json;
pub(crate) use toolward_bundle::text::visible_line;
pub(crate) use toolward_operator::installed::StoreLocation;
pub(crate) use toolward_operator::trust::Trust;

pub(crate) use crate::environment::{Environment, has_terminal};
pub(crate) use crate::failure::{Code, Exit, Failure, Kind, OperatorCode, Result};
pub(crate) use crate::flags::Flagged;
pub(crate) use crate::output::{Output, counted};
