"""Commands that find components and test claims about them."""

from __future__ import annotations

import shlex
from ast import literal_eval
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from broca.cli.keeping import OutputOptions, SharedOutput, keep
from broca.errors import BadInput, NotReproduced
from broca.known_paths import folder_of, place_of
from broca.options import (
    AtlasOptions,
    CompareOptions,
    LocalizeOptions,
    Options,
    ReplicateOptions,
    StressOptions,
    VerifyOptions,
)


class MethodFlags(Options):
    """Settings of the method as flags."""

    recovery: str | None = None
    """Regression of the cs- methods: {recoveries}; default: the method's own."""

    option: list[str] = field(default_factory=list)
    """A setting of the method, NAME=VALUE; may be repeated."""


def localize(
    options: LocalizeOptions,
    *,
    flags: MethodFlags = MethodFlags(),
    out: str = "broca-out",
    claim: bool = False,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Find the attention heads that MODEL needs for a task, and verify them on held-out items.

    Args:
        out: Folder for result.json and report.html.
        claim: Write claim.json too, for `broca replicate`.
    """
    from broca.results.claim import Claim

    if claim and not options.verify:
        raise BadInput("`claim` needs the verification: leave `verify` on")
    search, settings = options.search_options, settings_from(flags.option)
    if flags.recovery is not None:
        settings["recovery"] = flags.recovery
    options = replace(options, search_options=replace(search, options=settings))
    result = keep("localize", options, out, output, then=f"broca explore {shlex.quote(out)}")
    if claim:
        Claim.of(result).save(place_of(out))


def settings_from(pairs: Sequence[str]) -> dict[str, Any]:
    """Reads NAME=VALUE pairs; numbers become numbers, true and false become booleans.

    Raises:
        BadInput: A word is not of the form NAME=VALUE.
    """
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise BadInput(f"`option` '{pair}' is not of the form NAME=VALUE")
        value: Any = text
        with suppress(ValueError, SyntaxError):  # other words stay words
            value = literal_eval(text.capitalize() if text.isalpha() else text)
        settings[name.replace("-", "_")] = value
    return settings


def verify(
    options: VerifyOptions, *, out: str | None = None, output: SharedOutput = SharedOutput()
) -> None:
    """Test on held-out items whether a task needs some heads and other tasks do not.

    Args:
        out: Folder for verification.json; default: the run's.
    """
    _show_beside("verify", options, out, output)


def replicate(
    options: ReplicateOptions, *, out: str | None = None, output: SharedOutput = SharedOutput()
) -> None:
    """Repeat a claim on fresh items, with other seeds, under other ablations, in other words.

    Args:
        out: Folder for replication.json; default: the claim's.
    """
    folder = out or str(folder_of(options.claim))
    result = keep("replicate", options, folder, output, then=f"broca view {shlex.quote(folder)}")
    if result.answer != "held":
        raise NotReproduced(f"the claim of '{options.claim}' was {result.answer}")


def stress(
    options: StressOptions, *, out: str | None = None, output: SharedOutput = SharedOutput()
) -> None:
    """Test necessity, decodability, reversal and transfer of some heads, with controls.

    Args:
        out: Folder for stress.json; default: the run's, or broca-out.
    """
    _show_beside("stress", options, out, output)


def _show_beside(verb: str, options: Any, out: str | None, output: SharedOutput) -> None:
    """Shows the result of a verb about a run, which is kept beside it, or about a model."""
    from broca.results.localization import Localization
    from broca.runs.folder import options_of_run

    of_run = options.heads is None and getattr(options, "neurons", None) is None
    if of_run:
        Localization.read(options.target)  # refused before the out folder is made
        options = replace(options, run_options=options_of_run(options.target, options.run_options))
    folder = str(out or (folder_of(options.target) if of_run else "broca-out"))
    target = str(options.target) if verb == "stress" else folder
    keep(verb, options, folder, output, then=f"broca explore {shlex.quote(target)}")


def atlas(
    options: AtlasOptions, *, out: str = "broca-atlas", output: OutputOptions = OutputOptions()
) -> None:
    """Measure the effect of every head of MODEL on several tasks, and cluster heads and tasks.

    Args:
        out: Folder for atlas.json and atlas.html.
    """
    keep("atlas", options, out, output, then=f"broca explore {shlex.quote(out)}")


def compare(
    options: CompareOptions, *, out: str = "broca-out", output: SharedOutput = SharedOutput()
) -> None:
    """Compare models of one architecture, or runs, on the same masks and items.

    Args:
        out: Folder for comparison.json.
    """
    keep("compare", options, out, output, then=f"broca view {shlex.quote(out)}")
