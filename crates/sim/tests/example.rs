//! The example of a law in a program of one's own is compiled and run.

#[path = "../../../examples/own-law-rust/examples/registry.rs"]
#[expect(unreachable_pub, clippy::print_stdout, reason = "it is a program")]
mod registry;

#[test]
fn it_runs() {
    registry::main().expect("it ends");
}
