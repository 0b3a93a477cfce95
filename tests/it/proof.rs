//! What the harvester promises of its cost and of large catalogues, and that the checks of the invariants notice when one is broken.
//!
//! In process against the model, but where the lock or the command line has a part in it.

mod breaks;
mod ceilings;
mod costs;
mod ties;
