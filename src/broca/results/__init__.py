"""The results that verbs return and write."""

from broca.results.base import version_of_broca
from broca.results.files import check_out_folder, encode, read_text, restored, write_beside
from broca.results.localization import Localization
from broca.results.reproduction import Reproduction

__all__ = [
    "Localization",
    "Reproduction",
    "check_out_folder",
    "encode",
    "read_text",
    "restored",
    "version_of_broca",
    "write_beside",
]
