"""Catalogue records of two kinds, as XML documents and as rows of pycsw's table `records`.

`dc` is a csw:Record (OGC 07-006r1, 10.2), `iso` a gmd:MD_Metadata (OGC 07-045). Titles carry letters beyond ASCII and
characters that XML must escape. Knows no catalogue that runs: loading and sending are left to catalogue.py.
"""

import dataclasses
import datetime
import re
from xml.sax.saxutils import escape

CSW = "http://www.opengis.net/cat/csw/2.0.2"
CSW_30 = "http://www.opengis.net/cat/csw/3.0"
DC = "http://purl.org/dc/elements/1.1/"
GMD = "http://www.isotc211.org/2005/gmd"
GCO = "http://www.isotc211.org/2005/gco"

# Where a record's own identifier stands, by the name of its root element.
_IDENTIFIER_PATHS = {
    f"{{{CSW}}}Record": f"{{{DC}}}identifier",
    f"{{{CSW}}}SummaryRecord": f"{{{DC}}}identifier",
    f"{{{CSW}}}BriefRecord": f"{{{DC}}}identifier",
    f"{{{CSW_30}}}Record": f"{{{DC}}}identifier",
    f"{{{GMD}}}MD_Metadata": f"{{{GMD}}}fileIdentifier/{{{GCO}}}CharacterString",
}

_CODES = "http://standards.iso.org/iso/19139/resources/gmxCodelists.xml"
_ABSTRACT = (
    "River network, gauges and catchments derived from national survey data; "
    "quality controlled and published for reuse. "
) * 4

_DC_DOCUMENT = (
    f'<csw:Record xmlns:csw="{CSW}" xmlns:dc="{DC}" xmlns:dct="http://purl.org/dc/terms/" '
    'xmlns:ows="http://www.opengis.net/ows">'
    "<dc:identifier>{identifier}</dc:identifier><dc:type>dataset</dc:type><dc:title>{title}</dc:title>"
    "<dc:subject>hydrography</dc:subject><dct:abstract>{abstract}</dct:abstract>{stamp}"
    "<dc:language>eng</dc:language>"
    '<ows:BoundingBox crs="urn:ogc:def:crs:EPSG::4326"><ows:LowerCorner>50 5</ows:LowerCorner>'
    "<ows:UpperCorner>55 10</ows:UpperCorner></ows:BoundingBox></csw:Record>"
)

_DC_STAMP = "<dct:modified>{}</dct:modified>"

_ISO_DOCUMENT = (
    f'<gmd:MD_Metadata xmlns:gmd="{GMD}" xmlns:gco="{GCO}">'
    "<gmd:fileIdentifier><gco:CharacterString>{identifier}</gco:CharacterString></gmd:fileIdentifier>"
    "<gmd:language><gco:CharacterString>eng</gco:CharacterString></gmd:language>"
    f'<gmd:hierarchyLevel><gmd:MD_ScopeCode codeList="{_CODES}#MD_ScopeCode" codeListValue="dataset">dataset'
    "</gmd:MD_ScopeCode></gmd:hierarchyLevel>"
    "<gmd:contact><gmd:CI_ResponsibleParty><gmd:organisationName><gco:CharacterString>Example Agency"
    "</gco:CharacterString></gmd:organisationName><gmd:role>"
    f'<gmd:CI_RoleCode codeList="{_CODES}#CI_RoleCode" codeListValue="pointOfContact">pointOfContact'
    "</gmd:CI_RoleCode></gmd:role></gmd:CI_ResponsibleParty></gmd:contact>"
    "{stamp}"
    "<gmd:identificationInfo><gmd:MD_DataIdentification><gmd:citation><gmd:CI_Citation>"
    "<gmd:title><gco:CharacterString>{title}</gco:CharacterString></gmd:title>"
    "<gmd:date><gmd:CI_Date><gmd:date><gco:Date>2001-02-03</gco:Date></gmd:date><gmd:dateType>"
    f'<gmd:CI_DateTypeCode codeList="{_CODES}#CI_DateTypeCode" codeListValue="revision">revision'
    "</gmd:CI_DateTypeCode></gmd:dateType></gmd:CI_Date></gmd:date></gmd:CI_Citation></gmd:citation>"
    "<gmd:abstract><gco:CharacterString>{abstract}</gco:CharacterString></gmd:abstract>"
    "<gmd:language><gco:CharacterString>eng</gco:CharacterString></gmd:language>"
    "</gmd:MD_DataIdentification></gmd:identificationInfo></gmd:MD_Metadata>"
)

_ISO_STAMP = "<gmd:dateStamp><gco:DateTime>{}</gco:DateTime></gmd:dateStamp>"


@dataclasses.dataclass(frozen=True)
class Record:
    """A record to put into a catalogue. `stamp` is its modified date as text or None, `kind` is `dc` or `iso`."""

    identifier: str
    stamp: str | None
    title: str
    kind: str

    def xml(self):
        """The whole document."""
        document, stamp = (_ISO_DOCUMENT, _ISO_STAMP) if self.kind == "iso" else (_DC_DOCUMENT, _DC_STAMP)
        return document.format(
            identifier=self.identifier, stamp=stamp.format(self.stamp) if self.stamp else "", title=escape(self.title),
            abstract=_ABSTRACT,
        )

    def row(self):
        """The columns that pycsw 2.6.2 fills when it loads the document itself."""
        xml = self.xml()
        is_iso = self.kind == "iso"
        return {
            "identifier": self.identifier,
            "typename": "gmd:MD_Metadata" if is_iso else "csw:Record",
            "schema": GMD if is_iso else CSW,
            "mdsource": "local",
            "insert_date": self.stamp or "2015-01-01T00:00:00Z",
            "xml": xml,
            "anytext": " ".join(re.sub("<[^>]*>", " ", xml).split()),
            "language": "eng",
            "type": "dataset",
            "title": self.title,
            "abstract": _ABSTRACT,
            "keywords": "hydrography",
            "date_modified": self.stamp,
            "wkt_geometry": "POLYGON((5 50, 5 55, 10 55, 10 50, 5 50))",
        }


def identifier_of(element):
    """The identifier that a record's element names; None when it names none or is no record."""
    path = _IDENTIFIER_PATHS.get(element.tag)
    return None if path is None else element.findtext(path)


def series(count, kinds, step_seconds):
    """`count` records from 2015-01-01 on, `step_seconds` apart (0: all with one stamp), their kinds in turn."""
    start = datetime.datetime(2015, 1, 1)
    for number in range(count):
        moment = start + datetime.timedelta(seconds=number * step_seconds)
        yield Record(
            identifier=f"record-{number:07}",
            stamp=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            title=f"Sheet {number} \u2013 s\u00e9rie <A&B>",
            kind=kinds[number % len(kinds)],
        )
