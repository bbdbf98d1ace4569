"""The repository's text files as the house rules see them, and C without its comments and strings."""

import os
import re
from pathlib import Path

# Not part of the repository: at its top, and anywhere.
TOP_LEFT_OUT = {"build", "reclaim-data", "bench/results"}
LEFT_OUT = {".git", "node_modules", "__pycache__"}


class Tree:
    def __init__(self, files, home="/srv/checkouts/reclaim"):
        self.files = files  # path from the root: text
        self.home = home

    @classmethod
    def of(cls, root):
        files = {}
        for folder, folders, names in os.walk(root):
            inside = Path(folder).relative_to(root)
            folders[:] = [f for f in sorted(folders) if f not in LEFT_OUT and (inside / f).as_posix() not in TOP_LEFT_OUT]
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_file():
                    data = path.read_bytes()  # of a picture only the name is known
                    files[path.relative_to(root).as_posix()] = "" if b"\0" in data else data.decode(errors="replace")
        return cls(files, str(Path(root).resolve()))

    def matching(self, pattern):
        """Pairs of path and text whose whole path matches the regular expression."""
        return [(path, text) for path, text in self.files.items() if re.fullmatch(pattern, path)]


C_FILES = r"(src|tests|bench)/.*\.[ch]"

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_only(text):
    """C with comments and literals blanked, so that every line keeps its number and column."""
    return NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def findings(path, text, pattern, message):
    """`path:line: message` for each match; {0} in the message is the match."""
    for match in re.finditer(pattern, text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: {message.format(*match.groups() or [match[0]])}"
