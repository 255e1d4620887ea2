"""Prints as JSON whose the name TraceLens is in the interpreter that runs this; imports no part.

It is run by an interpreter that may hold TraceLens and nothing of this package, so it uses the
standard library only.
"""

from __future__ import annotations

import json
from importlib import metadata, util

found = [
    {
        "version": distribution.version,
        "summary": distribution.metadata["Summary"] or "",
        "scripts": {
            entry.name: entry.value
            for entry in distribution.entry_points
            if entry.group == "console_scripts"
        },
    }
    for distribution in metadata.distributions(name="TraceLens")
]
# A top-level name is looked up without being imported.
print(json.dumps({"distributions": found, "module": util.find_spec("TraceLens") is not None}))
