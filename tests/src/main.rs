//! Tests of the real `toolward` binary, as people run it, each in a separate home directory. They
//! check exit codes, output, and what did not happen.

#[cfg(test)]
mod amplifier;
#[cfg(test)]
mod bypass;
#[cfg(test)]
mod call;
#[cfg(test)]
mod cli_surface;
#[cfg(test)]
mod client_files;
#[cfg(test)]
mod completing;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod exec;
#[cfg(test)]
mod forms;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod importing;
#[cfg(test)]
mod independent;
#[cfg(test)]
mod installing;
#[cfg(test)]
mod languages;
#[cfg(test)]
mod ledger;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mistakes;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod publishing;
#[cfg(test)]
mod recorder;
#[cfg(test)]
mod records;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod screens;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tampering;
