//! Calls an installed tool once for each line of standard input, each time the one that
//! is installed then: `installed TOOL INPUT`.

#![expect(clippy::print_stdout, reason = "an example shows what it gets")]

use toolward::{LiveHost, Operator, Request};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let tool = arguments.next().ok_or("name a tool")?;
    let input = arguments.next().ok_or("give an input")?;
    // ANCHOR: installed
    let host = LiveHost::start(Operator::of_process(), |builder| builder)?;
    for line in std::io::stdin().lines() {
        line?;
        let reply = host.call(Request::new(&tool, input.clone())).await;
        println!("{}", reply.envelope());
    }
    // ANCHOR_END: installed
    Ok(())
}
