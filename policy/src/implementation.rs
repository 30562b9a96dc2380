//! A contract and a driver, each with its publisher, and the risk levels that a contract may have.

use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;

/// From this risk level on a person is asked.
pub(crate) const ASK_FROM_RISK: u8 = 2;
/// The risk level that only a person can approve.
pub(crate) const IRREVERSIBLE_RISK: u8 = 3;

/// A contract and the publisher whose bundle it came in.
#[derive(Debug, Clone, Copy)]
pub struct Contract<'a> {
    /// The contract.
    pub tool: &'a Tool,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}

/// A driver and the publisher whose bundle it came in.
#[derive(Debug, Clone, Copy)]
pub struct Implementation<'a> {
    /// The driver.
    pub driver: &'a Driver,
    /// Its publisher, as verified.
    pub publisher: &'a str,
}
