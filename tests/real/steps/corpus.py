"""Real answers of many servers, read by the library and by a second parser.

A folder of them may lie beside the project (../shared/corpus) or where CORPUS says, with an INDEX.md: a section a
repository (`## owner/name`, its files in the folder owner-name), a table row a file. Each GetRecordsResponse in CSW or
ISO terms is read; element children, counters and identifiers must be those of the index and of expat. Nothing of the
folder becomes a part of the project, and where it is missing there is nothing to check, which is said.
"""

import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import checks
import compare
from checks import check, check_equal, note
from records import CSW, CSW_30, DC, GCO, GMD

ROOT = pathlib.Path(__file__).resolve().parents[3]
READ_SECONDS_MAX = 500
# A file's name in the folder is made of so many last parts of its path.
_NAME_PARTS = 3
_KINDS = ("2.0.2:", "3.0:", "gmd:", "gmi:", "2.0:")
_IDENTIFIERS = (f"{{{DC}}}identifier", f"{{{GMD}}}fileIdentifier/{{{GCO}}}CharacterString")


def corpus():
    """The folder, or None."""
    named = os.environ.get("CORPUS")
    folder = pathlib.Path(named) if named else ROOT.parent / "shared" / "corpus"
    if named or (folder / "INDEX.md").is_file():
        return folder
    return None


def rows(index):
    """Folder, path and columns of each file that the index lists as a GetRecordsResponse in CSW or ISO terms."""
    folder = None
    for line in index.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (\S+)/(\S+) ", line):
            folder = f"{heading[1]}-{heading[2]}"
        columns = [column.strip() for column in line.strip("|").split("|")]
        if folder is None or len(columns) < 8 or columns[2] != "GetRecordsResponse":
            continue
        counted = dict(part.split("=", 1) for part in columns[6].split())
        if columns[7] == "" or columns[7].startswith(_KINDS):
            yield folder, columns[0], counted


def read(files):
    """What the library says of each file."""
    done = subprocess.run(
        ["cargo", "run", "--quiet", "--locked", "--example", "answers"], cwd=ROOT, check=True, text=True,
        input="".join(f"{file}\n" for file in files), stdout=subprocess.PIPE, timeout=READ_SECONDS_MAX,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def number(text):
    """A counter as the library hands it on: None where it is no number."""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def children(file):
    """The element children of SearchResults, by expat."""
    root = ElementTree.parse(file).getroot()
    for namespace in (CSW, CSW_30):
        results = root.find(f"{{{namespace}}}SearchResults")
        if results is not None:
            return list(results)
    raise ValueError(f"{file}: no SearchResults")


def identifiers(element):
    """All that may be the identifier of a record."""
    found = [named.text for path in _IDENTIFIERS for named in element.findall(path)]
    return {text.strip() for text in found if text and text.strip()}


def faults(file, counted, said):
    """A line for each thing that the library says otherwise than the index or expat."""
    if said["error"] is not None:
        return [f"{file}: {said['error']}"]
    found = []
    told = {"elems": len(said["records"]), "m": said["matched"], "next": said["next"]}
    wanted = {"elems": int(counted["elems"]), "m": number(counted["m"]), "next": number(counted["next"])}
    if told != wanted:
        found.append(f"{file}: {told}, the index says {wanted}")
    for element, record in zip(children(file), said["records"]):
        named = identifiers(element)
        if named and record["identifier"] not in named:
            found.append(f"{file}: the identifier {record['identifier']!r} is none of {sorted(named)}")
        if record["flaw"] is not None:
            found.append(f"{file}: {record['identifier']}: {record['flaw']}")
            continue
        try:
            alone = ElementTree.fromstring(record["xml"])
        except ElementTree.ParseError as error:
            found.append(f"{file}: {record['identifier']}: its xml does not parse alone: {error}")
            continue
        if ElementTree.canonicalize(record["xml"], rewrite_prefixes=True) != _canonical(element) or alone.tag != element.tag:
            found.append(f"{file}: {record['identifier']}: its xml is not what stands in the page")
    return found


def _canonical(element):
    element.tail = None
    return ElementTree.canonicalize(ElementTree.tostring(element, encoding="unicode"), rewrite_prefixes=True)


def main():
    folder = corpus()
    if folder is None:
        check("corpus: not here, nothing to check", True)
        return
    listed = [(folder / owner / "__".join(path.split("/")[-_NAME_PARTS:]), counted)
              for owner, path, counted in rows(folder / "INDEX.md")]
    present = [(file, counted) for file, counted in listed if file.is_file()]
    for file, _ in listed:
        if not file.is_file():
            note(f"listed, but not there: {file}")
    said = read([file for file, _ in present])
    if not check_equal("corpus: the library says something of each", [one["path"] for one in said],
                       [str(file) for file, _ in present]):
        return
    found = [fault for (file, counted), one in zip(present, said) for fault in faults(file, counted, one)]
    records = sum(len(one.get("records", ())) for one in said)
    check(f"corpus: {len(present)} answers with {records} records are read as the index and expat have them",
          records > 0 and not found, compare.shown(found))


checks.run(main)
