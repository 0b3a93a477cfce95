"""Checks that several steps make of a run and its store.

Wording and keys are those of the README: the last log line, the JSON summary, the public columns. Left to the steps:
which catalogue, which options, which numbers.
"""

import compare
from checks import check, check_equal

_QUIET_REQUESTS_MAX = 2
_SUMMARY_KEYS = {
    "source", "outcome", "exit_code", "error", "new", "updated", "unchanged", "deleted", "skipped", "matched",
    "requests", "retries", "bytes", "duration_s", "watermark_before", "watermark", "clock", "reconciled",
}


def complete(name, tick, new, updated, watermark):
    """The run ended with 0 and said that `new` and `updated` records came, nothing else, up to `watermark`."""
    wanted = (
        f"Harvest complete: {new + updated} records ({new} new, {updated} updated, 0 deleted, 0 unchanged), "
        f"watermark now {watermark}"
    )
    check_equal(f"{name}: exit 0", tick.exit_code, 0, tick.report())
    check_equal(f"{name}: the last log line tells {new} new, {updated} updated", tick.complete_line(), wanted,
                tick.report())
    summary = tick.summary
    check_equal(f"{name}: the summary has the keys of the README", _SUMMARY_KEYS - set(summary), set(), tick.report())
    said = {key: summary.get(key) for key in ("outcome", "exit_code", "error", "new", "updated", "deleted", "skipped",
                                              "watermark", "clock")}
    check_equal(f"{name}: the summary tells the same", said, {
        "outcome": "complete", "exit_code": 0, "error": None, "new": new, "updated": updated, "deleted": 0, "skipped": 0,
        "watermark": watermark, "clock": "record",
    }, tick.report())


def quiet(name, tick, watermark, served):
    """Nothing had changed: nothing came, in at most two requests, also by the catalogue's own count (`served`)."""
    complete(name, tick, 0, 0, watermark)
    asked = tick.summary.get("requests")
    check(
        f"{name}: at most {_QUIET_REQUESTS_MAX} requests (said {asked}, served {served})",
        isinstance(asked, int) and asked <= _QUIET_REQUESTS_MAX and served <= _QUIET_REQUESTS_MAX,
        tick.report(),
    )


def same(name, store, source, catalogue):
    """The store's records of `source` are those of the catalogue's database, neither more nor fewer."""
    count = len(catalogue.stamps())
    lost = compare.differences(store, source, catalogue.database)
    check(f"{name}: {count} records with the catalogue's stamps and titles, each a document of its own", not lost,
          compare.shown(lost))
    more = sorted(compare.extra(store, source, catalogue.database))
    check(f"{name}: no record beyond the catalogue's", not more, compare.shown(more))


def same_documents(name, store, source, documents):
    """The store's records of `source` are these elements, to the letter, neither more nor fewer."""
    stale = compare.stale(store, source, documents)
    check(f"{name}: {len(documents)} records with the content that the catalogue shows", not stale, compare.shown(stale))
    held = compare.read(store, "SELECT count(*) FROM records WHERE source = ?", source)
    check_equal(f"{name}: as many records as the catalogue shows", held, [(len(documents),)])


def rows(store):
    """All public columns of all records, to see that a run left them alone."""
    return compare.read(
        store,
        "SELECT source, identifier, title, modified, xml, harvested_at, changed_seq FROM records ORDER BY 1, 2",
    )
