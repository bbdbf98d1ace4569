"""No file contains the path of this checkout or of its parent: it does not exist on other machines."""

import re
from pathlib import PurePosixPath

from tree import findings

# Folders that exist on every machine and may be mentioned.
EVERYWHERE = {"/", "/home", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr/local/src", "/usr/src", "/var/tmp"}


def check(tree):
    home = PurePosixPath(tree.home)
    places = [str(place) for place in (home, home.parent) if str(place) not in EVERYWHERE]
    for place in places:
        for path, text in tree.files.items():
            yield from findings(path, text, rf"(?<![\w.~/-]){re.escape(place)}(?![\w.-])", "contains this machine's {0}")


broken = [
    {"README.md": "see /srv/checkouts/reclaim/docs"},
    {"docs/x.md": "lies beside it\nin /srv/checkouts/other"},
]
sound = [{"README.md": "data in /srv/data and src/srv/checkouts, or /srv/checkouts-of-others"}]
