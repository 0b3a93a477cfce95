//! Metrics of a run on their way out: into a file for node_exporter's textfile collector, and to a Pushgateway.
//!
//! What is told is composed here from the run, the store and the file's last text; the names are those of `metrics.rs`. Nothing here
//! changes how a run ends: what fails is a warning.

mod file;
mod gateway;

use crate::cli::{Outlets, SourceGuess};
use crate::clock::{Clock, SystemClock};
use crate::http::{Proxies, escape_outside_text};
use crate::metrics::{Snapshot, Stored, last_success_in, seconds_of, source_in};
use crate::report::Summary;
use crate::store::Overview;

/// Characters of a path or a reason in a message.
const TEXT_CHARS_MAX: usize = 300;

/// Tells of a run of a known source.
pub fn publish(outlets: &Outlets, proxies: Proxies, summary: &Summary, overview: Option<Overview>) {
    let before = outlets.file.as_deref().and_then(file::read);
    tell(outlets, proxies, summary, overview, before.as_deref());
}

/// Tells of a run that did not come to be, under the source that the file was about before, unless a better one is known.
pub fn publish_not_run(outlets: &Outlets, proxies: Proxies, summary: &Summary, guess: SourceGuess) {
    let before = outlets.file.as_deref().and_then(file::read);
    let source = guess.known.or_else(|| before.as_deref().and_then(source_in)).unwrap_or(guess.typed);
    tell(outlets, proxies, &Summary { source, ..summary.clone() }, None, before.as_deref());
}

fn tell(outlets: &Outlets, proxies: Proxies, summary: &Summary, overview: Option<Overview>, before: Option<&str>) {
    let succeeded_at = overview.as_ref().and_then(|overview| overview.last_success_at.as_deref()).and_then(seconds_of);
    let snapshot = Snapshot {
        summary,
        ended_s: SystemClock.now().unix_timestamp() as f64,
        last_success_s: succeeded_at.or_else(|| last_success_in(before?, &summary.source)),
        stored: overview.map(|Overview { watermark, inventory, records, problems, .. }| Stored {
            watermark: Some(watermark),
            inventory_at: inventory.map(|inventory| inventory.at),
            records,
            problems,
        }),
    };
    let text = snapshot.text();
    if let Some(path) = &outlets.file
        && let Err(error) = file::replace(path, &text)
    {
        let path = escape_outside_text(&path.display().to_string(), TEXT_CHARS_MAX);
        log::warn!("the metrics could not be written to {path}: {error}");
    }
    if let Some(gateway) = &outlets.push {
        // A Pushgateway keeps with POST what it was told before, and forgets it with PUT.
        let keeping = snapshot.last_success_s.is_none();
        if let Err(why) = gateway::send(gateway, proxies, keeping, &summary.source, text) {
            log::warn!("the metrics could not be pushed: {}", escape_outside_text(&why, TEXT_CHARS_MAX));
        }
    }
}
