//! Formats of others, such as AML, a format for tools. Toolward's host does not depend on this
//! crate: a program uses parts of the crate directly, or registers them with Toolward's libraries.
//!
//! * [`records`]: tools and calls as records of Agent Tool, and in the forms of OpenAI's chat
//!   completions and of Amplifier;
//! * [`import`]: bundles made from components and tools of other formats;
//! * [`aml`]: checks AML's definitions;
//! * [`amplifier`]: the world of Amplifier's tools, which the host can call once the program has
//!   registered the world;
//! * [`scaffold`]: a new bundle with a tools.json of version 1, Runloop's format;
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
