//! The `tollgate` program; everything is in the library's `cli`.

use std::process::ExitCode;

/// glibc keeps what one PIN check takes (19 MiB); this one gives it back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tollgate::cli::main()
}
