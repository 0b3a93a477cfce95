//! What is known of a catalogue, as the store keeps it: columns to a [`Dialect`] and back. Decides nothing.
//!
//! Where requests go to the very url that was typed, it is kept without what looks like a secret in it.

use crate::csw::Version;
use crate::dialect::{Clock, Dialect};
use crate::http::without_credentials;
use crate::store::StoredDialect;

/// The dialect as it is kept.
pub(super) fn stored(dialect: &Dialect, base: &str) -> StoredDialect {
    StoredDialect {
        endpoint: Some(if dialect.endpoint == base { without_credentials(base) } else { dialect.endpoint.clone() }),
        version: Some(dialect.version.as_str().to_owned()),
        binding: Some(dialect.manner()),
        property: dialect.property.clone(),
        sort: dialect.sort.clone(),
        sort_obeyed: Some(dialect.sort_obeyed),
        clock_sure: Some(dialect.clock_sure),
        literal: Some(if dialect.days_only { "day" } else { "date-time" }.to_owned()),
        clock: dialect.clock.map(|clock| clock.as_str().to_owned()),
        upper_bound: Some(dialect.upper_obeyed),
        matched_is_total: Some(dialect.matched_is_total),
        exact_changes: Some(dialect.exact_changes),
        gzip: Some(dialect.gzip),
    }
}

/// The remembered dialect; `None` when nothing was remembered.
pub(super) fn dialect_of(stored: &StoredDialect, base: &str) -> Option<Dialect> {
    let endpoint = stored.endpoint.clone()?;
    let endpoint = if endpoint == without_credentials(base) { base.to_owned() } else { endpoint };
    let dialect = Dialect {
        version: stored.version.as_deref().and_then(Version::named).unwrap_or_default(),
        property: stored.property.clone(),
        sort: stored.sort.clone(),
        sort_obeyed: stored.sort_obeyed.unwrap_or(false),
        clock_sure: stored.clock_sure.unwrap_or(false),
        clock: stored.clock.as_deref().and_then(Clock::named),
        days_only: stored.literal.as_deref() == Some("day"),
        upper_obeyed: stored.upper_bound.unwrap_or(false),
        matched_is_total: stored.matched_is_total.unwrap_or(false),
        exact_changes: stored.exact_changes.unwrap_or(0),
        gzip: stored.gzip.unwrap_or(true),
        ..Dialect::untried(endpoint)
    };
    Some(dialect.in_manner(stored.binding.as_deref().unwrap_or_default()))
}
