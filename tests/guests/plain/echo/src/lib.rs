//! Gives back what it gets: what is left is what a call costs.

use serde_json::Value;
use toolward_guest::{Call, Error, Reply, driver};

fn echo(call: Call<Value>) -> Result<Reply<Value>, Error> {
    Ok(Reply::new(call.input))
}

driver! {
    "plain.echo" => echo,
}
