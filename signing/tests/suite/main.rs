//! Behaviour of the signing crate as its callers see it: accepted and refused input, and agreement
//! with independent tools.

#[cfg(test)]
mod again;
#[cfg(test)]
mod ages;
#[cfg(test)]
mod arbitrary;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bare_keys;
#[cfg(test)]
mod book;
#[cfg(test)]
mod channels;
#[cfg(test)]
mod cosigning;
#[cfg(test)]
mod detached;
#[cfg(test)]
mod directories;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod independent;
#[cfg(test)]
mod key_files;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod provenance;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod signatures;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tampering;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod unread;
#[cfg(test)]
mod unsigned;
