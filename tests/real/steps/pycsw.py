"""5,000 records of pycsw into SQLite, a quiet second tick, one insert and one update by CSW-T, quiet again.

Three times: a catalogue of both kinds of records read as csw and as iso into two sources of one store, and a catalogue
of iso records read as iso with every default, as the README shows it.
"""

import os
import pathlib

import checks
import compare
import expect
import records
from catalogue import Catalogue
from checks import check, check_equal
from harvester import tick

RECORDS = 5000
INSERTED_STAMP = "2016-01-01T00:00:00Z"
UPDATED_STAMP = "2016-01-02T00:00:00Z"


def harvested(catalogue, run):
    """Ticks and counts what the catalogue served meanwhile."""
    before = catalogue.requests_served()
    done = run()
    return done, catalogue.requests_served() - before


def first_and_quiet(name, catalogue, run, store, source):
    """The first tick takes everything, the second nothing."""
    newest = max(catalogue.stamps().values())
    done, served = harvested(catalogue, run)
    expect.complete(f"{name}, first tick", done, RECORDS, 0, newest)
    check_equal(f"{name}, first tick: the summary's requests are those served", done.summary.get("requests"), served,
                done.report())
    if not check(f"{name}, first tick: there is a store", store.exists(), done.report()):
        return
    expect.same(f"{name}, first tick", store, source, catalogue)
    before = expect.rows(store)
    done, served = harvested(catalogue, run)
    expect.quiet(f"{name}, second tick", done, newest, served)
    check(f"{name}, second tick: no row was touched", expect.rows(store) == before)


def change(catalogue):
    """One record comes and one becomes another, with stamps newer than all others and long past."""
    title = "Changed \u2013 s\u00e9rie <A&B>"
    catalogue.insert(records.Record("record-inserted", INSERTED_STAMP, title, "dc"))
    catalogue.update(records.Record("record-0000001", UPDATED_STAMP, title, "iso"))


def change_and_quiet(name, catalogue, run, store, source):
    """The tick after `change` takes the two, the next nothing."""
    done, _ = harvested(catalogue, run)
    expect.complete(f"{name}, after an insert and an update", done, 1, 1, UPDATED_STAMP)
    if not check(f"{name}, after an insert and an update: there is a store", store.exists(), done.report()):
        return
    expect.same(f"{name}, after an insert and an update", store, source, catalogue)
    done, served = harvested(catalogue, run)
    expect.quiet(f"{name}, third quiet tick", done, UPDATED_STAMP, served)


def both_schemas(folder):
    """One store, two sources."""
    store = folder / "both.db"
    with Catalogue(folder / "mixed", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        def run(schema):
            return lambda: tick(catalogue.url, "--db", store, "--source", schema, "--schema", schema, folder=folder)

        for schema in ("csw", "iso"):
            first_and_quiet(f"mixed as {schema}", catalogue, run(schema), store, schema)
        change(catalogue)
        for schema in ("csw", "iso"):
            change_and_quiet(f"mixed as {schema}", catalogue, run(schema), store, schema)


def defaults(folder):
    """The store at its default place, the source named by the url."""
    store = folder / "harvest_state.db"
    with Catalogue(folder / "iso", records.series(RECORDS, ("iso",), 60)) as catalogue:
        def run():
            return tick(catalogue.url, "--schema", "iso", folder=folder)

        first_and_quiet("iso by default", catalogue, run, store, catalogue.url)
        if store.exists():
            check_equal("iso by default: the store answers source and watermark",
                        compare.read(store, "SELECT source, watermark FROM harvest_state"),
                        [(catalogue.url, max(catalogue.stamps().values()))])
            check_equal("iso by default: the store answers the count of records",
                        compare.read(store, "SELECT count(*) AS records FROM records"), [(RECORDS,)])
        change(catalogue)
        change_and_quiet("iso by default", catalogue, run, store, catalogue.url)


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    both_schemas(folder)
    defaults(folder)


checks.run(main)
