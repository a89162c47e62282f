"""Words of scanned pages and pictures, recognised by the program tesseract where the setting `ocr` or a run asks for it.

It is a program of the system and not of PyPI (`apt-get install tesseract-ocr`), run for one picture at a time, without a shell
and for at most `_LONGEST` seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess

from workbench import settings
from workbench.errors import SettingError
from workbench.ingest.encoding import normalise
from workbench.ingest.errors import ReadError
from workbench.ingest.readers.base import Source
from workbench.locators import locator

DOTS_AN_INCH = 300
_LONGEST = 100


def languages() -> str:
    """The setting `ocr_languages`, as tesseract has it. Raises SettingError where it or one of them is not installed."""
    wanted = str(settings.get("ocr_languages"))
    if shutil.which("tesseract") is None:
        raise SettingError(
            "Text is to be recognised, and the program tesseract is not installed",
            "Install it (apt-get install tesseract-ocr), or switch the setting ocr off",
        )
    answer = subprocess.run(["tesseract", "--list-langs"], capture_output=True, text=True, timeout=60, check=False)
    held = answer.stdout.split("\n")[1:]
    missing = [name for name in wanted.split("+") if name not in held]
    if missing:
        raise SettingError(
            f"Text is to be recognised in the language {missing[0]!r}, which tesseract does not have",
            f"Install it (apt-get install tesseract-ocr-{missing[0].replace('_', '-')}), or change ocr_languages",
        )
    return wanted


def recognised(picture: bytes, source: Source) -> str:
    """The words in a picture of any format that tesseract reads, "" for none. Raises ReadError."""
    source.alive()
    try:
        answer = subprocess.run(
            ["tesseract", "stdin", "stdout", "-l", source.ocr, "--dpi", str(DOTS_AN_INCH)],
            input=picture,
            capture_output=True,
            timeout=_LONGEST,
            env={**os.environ, "OMP_THREAD_LIMIT": "1"},  # several files are read at once
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as exc:
        words = f"it took more than {_LONGEST} s" if isinstance(exc, subprocess.TimeoutExpired) else "tesseract failed"
        raise ReadError(f"Its text cannot be recognised: {words}", "Run it through another program (ocrmypdf)") from exc
    source.alive()
    lines = [line.rstrip() for line in normalise(answer.stdout.decode("utf-8", "replace")).split("\n")]
    text = "\n".join(lines).strip("\n \f")
    return text if sum(map(str.isalnum, text)) > 1 else ""


def place(**keys: object) -> str:
    """The place of words that were recognised: a citation says so, because they may be wrong."""
    return locator(**keys, text="recognised")
