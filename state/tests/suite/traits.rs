//! Tests every implementation of the traits: the same tests run with the local implementation and
//! with [`Remote`], which simulates an implementation over a network.

mod approvals;
mod buckets;
mod calls;
mod keys;
mod leases;
mod remote;

pub(crate) use remote::Remote;

/// Runs each test over both implementations: `local` and `remote` create the test's argument.
macro_rules! over_both {
    ($local:expr, $remote:expr; $($name:ident),+ $(,)?) => {
        mod local {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                super::$name(&$local).await;
            })+
        }

        mod remote {
            use super::*;

            $(#[tokio::test]
            async fn $name() {
                super::$name(&$remote).await;
            })+
        }
    };
}
pub(crate) use over_both;
