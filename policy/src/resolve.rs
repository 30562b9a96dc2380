//! `[resolve]`: the drivers that an operator accepts at all, by the regions and tags that they
//! claim. It grants nothing.
//!
//! A driver's `region` and `policy_tags` are its publisher's claims (AIP-30). A claim against the
//! driver always counts; a claim for the driver counts only if the operator trusts the claims of
//! its publisher.

use crate::error::{self, PolicyError, Refuse as _};
use crate::fields::{Fields, each, list, one_or_each};
use crate::implementation::Implementation;
use crate::name::Publisher;
use crate::routing::Rejection;

/// The region that a driver without `region` has (AIP-30).
const GLOBAL: &str = "global";

/// The longest region or tag, in bytes.
const MAX_LABEL_BYTES: usize = 128;

/// The most entries of a list, as many as a list in a file may have. If layers are joined, the
/// limit applies to their entries together.
const MAX_ENTRIES: usize = 1024;

/// The drivers that may serve tools. The default accepts all drivers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResolveTable {
    /// The accepted regions. A driver that reaches the network must claim one of them, exactly as
    /// written here. A driver without a region has the region `global`. `None` and an empty list
    /// accept any region.
    pub region: Option<Vec<String>>,
    /// A driver must claim one of these policy tags. `None` and an empty list require no tag.
    pub allowed_tags: Option<Vec<String>>,
    /// The policy tags that no driver may have.
    pub denied_tags: Vec<String>,
    /// The publishers that are trusted to claim a region or an allowed tag for their drivers.
    /// `None` for no publisher.
    pub publishers: Option<Vec<Publisher>>,
    /// Whether the next driver serves a call whose driver failed. `None` means no.
    pub fallback: Option<bool>,
}

impl ResolveTable {
    /// The accepted regions; empty if any region is accepted.
    pub fn regions(&self) -> &[String] {
        self.region.as_deref().unwrap_or_default()
    }

    /// A driver must claim one of these tags; empty if no tag is required.
    pub fn allowed_tags(&self) -> &[String] {
        self.allowed_tags.as_deref().unwrap_or_default()
    }

    /// The publishers whose claims are trusted.
    pub fn publishers(&self) -> &[Publisher] {
        self.publishers.as_deref().unwrap_or_default()
    }

    /// Whether the next driver serves a call whose driver failed.
    pub fn fallback(&self) -> bool {
        self.fallback.unwrap_or_default()
    }

    /// Why a driver is not accepted; empty if it is.
    pub(crate) fn rejects(&self, implementation: &Implementation<'_>) -> Vec<Rejection> {
        let tags = &implementation.driver.policy_tags;
        let denied = tags.iter().find(|tag| self.denied_tags.contains(tag));
        let denied = denied.map(|tag| Rejection::TagDenied { tag: tag.clone() });
        let missing = self.lacks_tag(implementation);
        let elsewhere = self.lacks_region(implementation);
        denied.into_iter().chain(missing).chain(elsewhere).collect()
    }

    fn lacks_tag(&self, implementation: &Implementation<'_>) -> Option<Rejection> {
        let allowed = self.allowed_tags();
        if allowed.is_empty() {
            return None;
        }
        let tags = &implementation.driver.policy_tags;
        match tags.iter().find(|tag| allowed.contains(tag)) {
            None => Some(Rejection::TagMissing),
            Some(_) if self.believes(implementation.publisher) => None,
            Some(tag) => Some(Rejection::TagNotBelieved { tag: tag.clone() }),
        }
    }

    /// Why a driver's region is not accepted. A driver without egress sends nothing, so its region
    /// does not matter.
    fn lacks_region(&self, implementation: &Implementation<'_>) -> Option<Rejection> {
        let needed = self.regions();
        let driver = implementation.driver;
        if needed.is_empty() || driver.egress.is_empty() {
            return None;
        }
        let claimed = driver.region.iter().map(String::as_str);
        let unclaimed = driver.region.is_empty().then_some(GLOBAL);
        let claimed = claimed
            .chain(unclaimed)
            .filter(|region| needed.iter().any(|one| one == region));
        let claimed: Vec<&str> = claimed.collect();
        // The claim `global` needs no trust, since a driver that claims no region has it, too.
        if claimed.contains(&GLOBAL)
            || (!claimed.is_empty() && self.believes(implementation.publisher))
        {
            return None;
        }
        Some(match claimed.first() {
            Some(claimed) => Rejection::RegionNotBelieved {
                claimed: (*claimed).to_owned(),
            },
            None => Rejection::Region {
                needed: needed.to_vec(),
                claimed: driver.region.clone(),
            },
        })
    }

    fn believes(&self, publisher: &str) -> bool {
        let mut publishers = self.publishers().iter();
        publishers.any(|known| known.as_str() == publisher)
    }

    /// This table with another one on top: tags that either denies are denied, and for each other
    /// key `later` wins.
    pub(crate) fn layer(mut self, later: Self) -> Self {
        self.denied_tags.extend(later.denied_tags);
        self.denied_tags.sort();
        self.denied_tags.dedup();
        Self {
            region: later.region.or(self.region),
            allowed_tags: later.allowed_tags.or(self.allowed_tags),
            denied_tags: self.denied_tags,
            publishers: later.publishers.or(self.publishers),
            fallback: later.fallback.or(self.fallback),
        }
    }

    /// Checks that `earlier` accepts every driver that this table accepts, and has `fallback` if
    /// this table has it. The error names the key that accepts more.
    pub(crate) fn narrows(&self, earlier: &Self) -> Result<(), &'static str> {
        let denied = |tag| self.denied_tags.contains(tag);
        if !earlier.denied_tags.iter().all(denied) {
            return Err("denied_tags");
        }
        let wider = |now: &[String], before: &[String]| {
            !before.is_empty() && (now.is_empty() || !now.iter().all(|one| before.contains(one)))
        };
        if wider(self.allowed_tags(), earlier.allowed_tags()) {
            return Err("allowed_tags");
        }
        if wider(self.regions(), earlier.regions()) {
            return Err("region");
        }
        if self.fallback() && !earlier.fallback() {
            return Err("fallback");
        }
        // If nothing is required, trusted claims do not matter.
        let asked = !earlier.regions().is_empty() || !earlier.allowed_tags().is_empty();
        let known = |publisher| earlier.publishers().contains(publisher);
        if asked && !self.publishers().iter().all(known) {
            return Err("publishers");
        }
        Ok(())
    }

    /// Checks the properties that code or joined layers can get wrong.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        let lists = [
            ("region", self.regions().len()),
            ("allowed_tags", self.allowed_tags().len()),
            ("denied_tags", self.denied_tags.len()),
            ("publishers", self.publishers().len()),
        ];
        if let Some((key, found)) = lists.iter().find(|(_, found)| *found > MAX_ENTRIES) {
            let message =
                format!("expected at most {MAX_ENTRIES} entries in `{key}`, found {found}");
            return Err(error::TOO_LARGE.error(message));
        }
        let tags = self.allowed_tags().iter().chain(&self.denied_tags);
        let mut labels = self.regions().iter().chain(tags);
        labels.try_for_each(|text| label(text).map(|_| ()))
    }

    pub(crate) fn read(fields: &mut Fields<'_>) -> Result<Self, PolicyError> {
        let denied_tags = list(fields, "denied_tags", label)?;
        let fallback = fields.take("fallback");
        Ok(Self {
            region: one_or_each(fields, "region", label)?,
            allowed_tags: each(fields, "allowed_tags", label)?,
            denied_tags,
            publishers: each(fields, "publishers", Publisher::parse)?,
            fallback: fallback.map(|field| field.boolean()).transpose()?,
        })
    }
}

/// Checks a region or tag, which must equal a driver's claim exactly.
pub(crate) fn label(text: &str) -> Result<String, PolicyError> {
    let fits = (1..=MAX_LABEL_BYTES).contains(&text.len()) && text.trim() == text;
    if fits && text != "*" && !text.chars().any(toolward_support::text::is_hidden) {
        return Ok(text.to_owned());
    }
    Err(error::WRONG_VALUE.expected(format_args!("a label of 1 to {MAX_LABEL_BYTES} bytes without spaces around it"), text)
    .hinted("write it as DRIVER.md does, for example \"eu\" or \"pii-safe\"; `*` stands for nothing here"))
}
