//! Asks the components of a bundle which of their tools they serve, for `build` and `test`.

use std::path::Path;

use tokio::runtime::Runtime;
use toolward_bundle::content::Content;
use toolward_host::{Broker, Host};
use toolward_operator::examples::{MissingTool, ToolProbe};
use toolward_operator::processes::CompileCache;
use toolward_operator::trust::Trust;
use toolward_operator::{processes, runtime};

use super::compile_broker;
use crate::environment::Environment;
use crate::failure::Result;
use crate::output::Output;

/// The questions, and a host without grants that passes them on.
pub(super) struct Probe {
    probe: ToolProbe,
    host: Host,
}

impl Probe {
    /// The questions to these components, if there are any.
    pub(super) fn of(
        content: &Content,
        cache: &CompileCache,
        broker: &Broker,
    ) -> Result<Option<Self>> {
        let Some(probe) = ToolProbe::of(content) else {
            return Ok(None);
        };
        let host = cache.host(probe.host(), broker)?;
        Ok(Some(Self { probe, host }))
    }

    /// Asks.
    pub(super) fn ask(&self, runtime: &Runtime) -> Vec<MissingTool> {
        runtime.block_on(self.probe.ask(&self.host))
    }
}

/// Asks the components of a directory under work, in this process, which is confined from then on. A bundle whose
/// documents have errors is not asked: `check` lists them.
pub(super) fn under_work(
    directory: &Path,
    environment: &Environment,
    output: &Output,
) -> Result<Vec<MissingTool>> {
    let Ok(content) = Content::from_dev(directory) else {
        return Ok(Vec::new());
    };
    let cache = CompileCache::default();
    let broker = cache.broker(&compile_broker::command()?, environment, output)?;
    let Some(probe) = Probe::of(&content, &cache, &broker)? else {
        return Ok(Vec::new());
    };
    broker.start()?;
    let confinement = probe.host.requirements().confinement();
    processes::confine(confinement, &broker, &Trust::default(), environment, output)?;
    let runtime = runtime()?;
    let missing = probe.ask(&runtime);
    runtime.shutdown_background();
    Ok(missing)
}
