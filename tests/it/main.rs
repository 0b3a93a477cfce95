//! The tests of csw-harvester that need more than one module: through the real binary for what a user sees, in process for logic.

mod support;
mod support_check;
