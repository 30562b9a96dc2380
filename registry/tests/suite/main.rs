//! The registry crate with a real registry, and its refusals of a hostile one.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod attachments;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod authentication;
#[cfg(test)]
mod book;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod others;
#[cfg(test)]
mod pulling;
#[cfg(test)]
mod pushing;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod realms;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod retries;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod server;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod tokens;
