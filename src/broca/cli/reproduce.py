"""`broca reproduce`: the paper's tables and figures, on any model."""

from broca.cli.keeping import measuring
from broca.cli.output import print_text
from broca.cli.progress import PrintOptions
from broca.cli.wording import tell
from broca.options import ReproduceOptions


def reproduce(
    options: ReproduceOptions, *, out: str = "broca-paper", prints: PrintOptions = PrintOptions()
) -> None:
    """Repeat a table or figure of the paper on other models, beside the published figures.

    Args:
        out: Folder for JSON, CSV, the page, and the measured rows.
    """
    with measuring(out, options, prints) as (folder, within, _):
        import broca
        from broca.results.files import encode
        from broca.studies.pages import as_csv, write  # imports torch

        reproductions = broca.reproduce(settings=within)
    paths = write(reproductions, folder)
    if prints.json:
        texts = ",\n".join(encode(reproduction).rstrip() for reproduction in reproductions)
        print_text(f"[{texts}]\n" if len(reproductions) > 1 else f"{texts}\n")
    elif len(reproductions) == 1:
        print_text(as_csv(reproductions[0]))
    notes = dict.fromkeys(note for table in reproductions for note in table.notes)
    tell(*(f"note: {note}" for note in notes), *(f"written: {path}" for path in paths))
