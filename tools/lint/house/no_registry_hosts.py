"""No file contains the host of a package registry: it is configured on each machine."""

from tree import findings

HOSTS = (
    r"registry\.npmjs\.org|registry\.yarnpkg\.com|npm\.pkg\.github\.com|pypi\.org|files\.pythonhosted\.org"
    r"|(?:deb|security|ftp|archive)\.debian\.org|apt\.postgresql\.org|deb\.nodesource\.com"
)


def check(tree):
    for path, text in tree.files.items():
        yield from findings(path, text, HOSTS, "contains the registry {0}")
    for path, text in tree.matching(r"(.*/)?package-lock\.json"):
        yield from findings(path, text, r'"resolved": "(https?://[^"]+)"', "is resolved to {0}")


host = ".".join(["registry", "npmjs", "org"])
broken = [
    {"tests/.npmrc": f"registry=https://{host}/"},
    {"clients/js/package-lock.json": '{"resolved": "https://packages.example.com/pg-8.0.0.tgz"}'},
]
sound = [{"tests/package-lock.json": '{"integrity": "sha512-x"}', "README.md": "https://www.postgresql.org/"}]
