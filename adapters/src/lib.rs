//! Formats of other hosts. The core does not know them: a program uses parts of this crate
//! directly, or registers them with the core.
//!
//! * [`records`]: tools and calls as records of Agent Tool, for OpenAI's chat completions and for
//!   Amplifier;
//! * [`import`]: bundles of components, of AML's definitions, of Amplifier's tools and of Runloop's
//!   tools.json;
//! * [`aml`]: the rules of AML's definitions;
//! * [`amplifier`]: the world of Amplifier's tools, which the host calls once it is registered;
//! * [`scaffold`]: a new tools.json of version 1;
//! * [`frames`]: recorded calls as Runloop traces them.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[cfg(feature = "import")]
pub mod aml;
pub mod amplifier;
#[cfg(feature = "frames")]
pub mod frames;
#[cfg(feature = "import")]
pub mod import;
pub mod records;
#[cfg(feature = "import")]
pub mod scaffold;
