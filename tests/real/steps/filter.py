"""The user's own filter against pycsw: a document in both encodings and CQL, first tick, quiet tick, a change, and a refusal."""

import os
import pathlib

import checks
import compare
import expect
import records
from catalogue import Catalogue
from checks import check, check_equal
from harvester import tick

RECORDS = 300
# Of the titles `Sheet 0` to `Sheet 299` those that begin with `Sheet 1`: 1, 10 to 19, 100 to 199.
SELECTED = 111
CHANGED_STAMP = "2016-01-01T00:00:00Z"

_OGC = """<?xml version="1.0" encoding="UTF-8"?>
<Filter xmlns="http://www.opengis.net/ogc">
  <PropertyIsLike wildCard="%" singleChar="_" escapeChar="\\">
    <PropertyName>dc:title</PropertyName>
    <Literal>Sheet 1%</Literal>
  </PropertyIsLike>
</Filter>
"""
_FES = """<fes:Filter xmlns:fes="http://www.opengis.net/fes/2.0" xmlns:gml="http://www.opengis.net/gml">
  <fes:And>
    <fes:PropertyIsLike wildCard="%" singleChar="_" escapeChar="\\">
      <fes:ValueReference>dc:title</fes:ValueReference><fes:Literal>Sheet 1%</fes:Literal>
    </fes:PropertyIsLike>
    <fes:BBOX>
      <fes:ValueReference>ows:BoundingBox</fes:ValueReference>
      <gml:Envelope srsName="urn:ogc:def:crs:EPSG::4326">
        <gml:lowerCorner>49 4</gml:lowerCorner><gml:upperCorner>56 11</gml:upperCorner>
      </gml:Envelope>
    </fes:BBOX>
  </fes:And>
</fes:Filter>
"""
_CQL = "dc:title like 'Sheet 1%'"
_CQL_OR = f"{_CQL} or dc:title like 'Sheet 2%'"


def selects(name, catalogue, run, store, stamps):
    """The first tick takes what is selected, the next nothing."""
    done = run()
    expect.complete(name, done, SELECTED, 0, max(stamps))
    if not check(f"{name}: there is a store", store.exists(), done.report()):
        return
    titles = [row[0] for row in compare.read(store, "SELECT title FROM records WHERE source = ?", name)]
    check(f"{name}: only titles that were asked for", len(titles) == SELECTED and all(t.startswith("Sheet 1") for t in titles),
          titles[:5])
    before = catalogue.requests_served()
    done = run()
    expect.quiet(f"{name}, second tick", done, max(stamps), catalogue.requests_served() - before)


def main():
    folder = pathlib.Path(os.environ["REAL_DIR"])
    store = folder / "filter.db"
    for file, text in (("ogc.xml", _OGC), ("fes.xml", _FES), ("refused.xml", _OGC.replace("dc:title", "dc:nonsense"))):
        (folder / file).write_text(text, encoding="utf-8")
    ways = {
        "ogc:Filter": ("--filter-file", folder / "ogc.xml"),
        "fes:Filter": ("--filter-file", folder / "fes.xml"),
        "CQL": ("--cql", _CQL),
        "ogc:Filter in 3.0.0": ("--filter-file", folder / "ogc.xml", "--csw-version", "3.0.0"),
        "CQL in 3.0.0": ("--cql", _CQL, "--csw-version", "3.0.0"),
        "fes:Filter by GET": ("--filter-file", folder / "fes.xml", "--method", "get"),
        "CQL by GET": ("--cql", _CQL, "--method", "get"),
    }
    with Catalogue(folder / "catalogue", records.series(RECORDS, ("dc", "iso"), 60)) as catalogue:
        def run(name):
            return lambda: tick(catalogue.url, "--db", store, "--source", name, *ways[name], folder=folder)

        wanted = [stamp for identifier, stamp in catalogue.stamps().items() if str(int(identifier[7:])).startswith("1")]
        for name in ways:
            selects(name, catalogue, run(name), store, wanted)

        catalogue.update(records.Record("record-0000010", CHANGED_STAMP, "Sheet 10 changed", "dc"))
        catalogue.update(records.Record("record-0000020", CHANGED_STAMP, "Sheet 20 changed", "dc"))
        for name in ways:
            expect.complete(f"{name}, after two updates of which one is selected", run(name)(), 0, 1, CHANGED_STAMP)

        # pycsw reads no parentheses: it cannot be asked for this and a date at once.
        for new in (2 * SELECTED, 0):
            done = tick(catalogue.url, "--db", store, "--source", "or", "--cql", _CQL_OR, folder=folder)
            check_equal(f"CQL with an or: exit 0 and {new} new", (done.exit_code, done.summary.get("new")), (0, new), done.report())

        done = tick(catalogue.url, "--db", store, "--filter-file", folder / "refused.xml", folder=folder)
        check_equal("a filter that pycsw refuses: exit 76", done.exit_code, 76, done.report())
        check("a filter that pycsw refuses: its own words are told", "nonsense" in done.complete_line(), done.report())


checks.run(main)
