"""20,000 records of one stamp, as after a bulk import, read in pages of 500; the second tick is quiet."""

import os
import pathlib

import checks
import expect
import records
from catalogue import Catalogue
from checks import check
from harvester import tick

RECORDS = 20_000
PAGE_SIZE = 500


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    store = folder / "tie.db"
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc",), 0)) as catalogue:
        def run():
            return tick(catalogue.url, "--db", store, "--source", "tie", "--page-size", PAGE_SIZE, folder=folder)

        stamp = max(catalogue.stamps().values())
        done = run()
        expect.complete("tie, first tick", done, RECORDS, 0, stamp)
        if not check("tie: there is a store", store.exists(), done.report()):
            return
        expect.same("tie, first tick", store, "tie", catalogue)
        before = catalogue.requests_served()
        done = run()
        expect.quiet("tie, second tick", done, stamp, catalogue.requests_served() - before)


checks.run(main)
