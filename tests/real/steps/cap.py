"""A catalogue that answers with 10 records whatever is asked for: all 1,000 come, page size 100 notwithstanding."""

import os
import pathlib

import checks
import expect
import records
from catalogue import Catalogue
from checks import check
from harvester import tick

RECORDS = 1000
PAGE_CAP = 10
# Twice what pages of the cap need: more would mean that records are read over and over.
REQUESTS_MAX = 2 * RECORDS // PAGE_CAP


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    store = folder / "cap.db"
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60), PAGE_CAP) as catalogue:
        done = tick(catalogue.url, "--db", store, "--source", "cap", "--page-size", 100, folder=folder)
        expect.complete("cap", done, RECORDS, 0, max(catalogue.stamps().values()))
        asked = done.summary.get("requests")
        check(f"cap: at most {REQUESTS_MAX} requests ({asked})", isinstance(asked, int) and asked <= REQUESTS_MAX,
              done.report())
        if check("cap: there is a store", store.exists(), done.report()):
            expect.same("cap", store, "cap", catalogue)


checks.run(main)
