//! Serves a tool that is installed: `serve TOOL` calls it with each line of standard
//! input, each time the release that is installed then.

use toolward::{LiveHost, Operator, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tool = std::env::args().nth(1).ok_or("name a tool")?;
    // ANCHOR: installed
    let host = LiveHost::start(Operator::of_process(), |builder| builder)?;
    for input in std::io::stdin().lines() {
        let reply = host.call(Request::new(&tool, input?)).await;
        println!("{}", reply.envelope());
    }
    // ANCHOR_END: installed
    Ok(())
}
