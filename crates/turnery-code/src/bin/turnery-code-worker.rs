//! Worker executable for programs that cannot call `turnery_code::init` themselves.

/// Exit code of a program that was started in a wrong way.
const USAGE_ERROR: i32 = 2;

fn main() {
    turnery_code::init();
    // Not started as a worker.
    std::process::exit(USAGE_ERROR);
}
