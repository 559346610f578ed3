"""Builds the distribution, checks it, installs it into an empty environment and tries it.

`make release` runs it. It uploads nothing; the last line states the command.
"""

from __future__ import annotations

import re
import sys
import tomllib

from wheels import ROOT, build, environment, run, try_out

DIST = ROOT / "dist"


def require_ready() -> str:
    """Returns the version if the changelog has a dated entry for it and all changes are committed.

    Raises:
        RuntimeError: The entry is missing, or a change is not committed.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        raise RuntimeError(f"CHANGELOG.md has no dated entry '## {version} (YYYY-MM-DD)'")
    if changed := run("git", "status", "--porcelain").strip():
        raise RuntimeError(f"there are changes that are not committed:\n{changed}")
    return str(version)


def main() -> None:
    """Runs all steps and exits at the first that fails."""
    try:
        version = require_ready()
        wheel, source = build(DIST)
        bin_ = environment(ROOT / "build" / "release")
        run(bin_ / "python", "-m", "pip", "install", "--quiet", "twine")
        print(run(bin_ / "twine", "check", "--strict", wheel, source).strip(), flush=True)
        bin_ = environment(ROOT / "build" / "release")
        run(bin_ / "python", "-m", "pip", "install", "--quiet", "-c", "constraints.txt", wheel)
        try_out(bin_, ROOT / "build" / "release-trial")
    except RuntimeError as error:
        sys.exit(f"release: {error}")
    print(f"broca {version} is ready: twine upload dist/*; then git tag v{version}")


if __name__ == "__main__":
    main()
