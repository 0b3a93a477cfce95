"""The commands that a README tells people to type, so that they are typed as they stand.

Left to the steps: where they are typed, and what is filled into the files that a person would edit.
"""

import pathlib

TOP = pathlib.Path(__file__).resolve().parent.parent.parent


def commands(path, heading):
    """The lines of the `sh` blocks between a heading and the next one, a list a block; lines that a backslash breaks are joined."""
    below = None
    blocks = []
    block = None
    for line in (TOP / path).read_text(encoding="utf-8").splitlines():
        if block is not None:
            if line.startswith("```"):
                blocks.append([command for command in "\n".join(block).replace("\\\n", " ").splitlines() if command.strip()])
                block = None
            else:
                block.append(line)
        elif line.startswith("#"):
            if below:
                break
            below = line == heading
        elif below and line == "```sh":
            block = []
    if not blocks:
        raise LookupError(f"{path} has no commands below {heading!r}")
    return blocks
