//! The imports that most commands use.

pub(crate) use std::path::{Path, PathBuf};

pub(crate) use clap::{Args, Subcommand};
pub(crate) use serde_json::{Map, Value, json};
pub(crate) use toolward_bundle::content::Content;
pub(crate) use toolward_bundle::text::{visible, visible_line};
pub(crate) use toolward_operator::bundles::BundleSource;
pub(crate) use toolward_operator::granted::{Granted, PolicyFiles};
pub(crate) use toolward_operator::host_setup::{HostSetup, opens_buckets};
pub(crate) use toolward_operator::installed::StoreLocation;
pub(crate) use toolward_operator::lasting_changes::{LastingChange, LastingChanges, TextEdit};
pub(crate) use toolward_operator::network::Network;
pub(crate) use toolward_operator::processes::CompileCache;
pub(crate) use toolward_operator::trust::Trust;
pub(crate) use toolward_operator::{file, runtime};

pub(crate) use crate::codes::Code;
pub(crate) use crate::environment::has_terminal;
pub(crate) use crate::failure::{
    Exit, Failure, Kind, OperatorCode, Result, authored, failed, invalid, invalid_file, packed,
};
pub(crate) use crate::flags::{ConfineFlags, Flagged};
#[cfg(feature = "adapters")]
pub(crate) use crate::output::quoted;
pub(crate) use crate::output::{Context, TextLines, counted, listed, raw, state_word, unwritable};
pub(crate) use crate::progress::Bar;
pub(crate) use crate::wrap::wrapped;
