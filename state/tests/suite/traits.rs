//! What every implementation of the traits does: the same tests run over the one of this machine and over [`Remote`],
//! which stands for one that reaches its state over a network.

mod approvals;
mod buckets;
mod calls;
mod keys;
mod leases;
mod remote;

pub(crate) use remote::Remote;

/// Runs each test over both implementations: `local` and `remote` make what it is given.
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
