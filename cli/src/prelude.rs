//! What most commands use.

pub(crate) use std::path::{Path, PathBuf};

pub(crate) use clap::{Args, Subcommand};
pub(crate) use serde_json::{Value, json};
pub(crate) use toolward_bundle::content::Content;
pub(crate) use toolward_bundle::text::{visible, visible_line};
pub(crate) use toolward_operator::bundles::BundleSource;
pub(crate) use toolward_operator::granted::{Granted, PolicyFiles};
pub(crate) use toolward_operator::host_setup::HostSetup;
pub(crate) use toolward_operator::installed::StoreLocation;
pub(crate) use toolward_operator::processes::CompileCache;
pub(crate) use toolward_operator::trust::Trust;
pub(crate) use toolward_operator::{file, runtime};

pub(crate) use crate::environment::{Environment, has_terminal};
pub(crate) use crate::failure::{Code, Exit, Failure, Kind, OperatorCode, Result, failed};
pub(crate) use crate::flags::{ConfineFlags, Flagged};
pub(crate) use crate::output::{Output, TextLines, counted};
