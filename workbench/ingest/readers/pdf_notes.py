"""What people have written onto a PDF: remarks, filled form fields, and files pinned to a page.

None of it is in the page's own text, and a search that cannot find a reviewer's remark or the name in a filled form is wrong
about the document. Remarks come after the words of their page, so that the page's number stays right.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

from workbench.ingest.encoding import normalise

_PUSHED, _SIGNED = 1, 7
_CHOSEN = (2, 3)  # check boxes and radio buttons


def page_notes(page: Any, form: Any) -> str:
    """The remarks and filled fields of a page, a line each, as `author: words` or `field: value`.

    Args:
        page: The page (`pypdfium2.PdfPage`). Call it under the lock.
        form: The document's form, or None.
    """
    import pypdfium2.raw as raw

    wordless = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_FILEATTACHMENT)
    found: list[str] = []
    for note in _annotations(page):
        kind = raw.FPDFAnnot_GetSubtype(note)
        if kind == raw.FPDF_ANNOT_WIDGET:
            found.append(_field(form, note) if form is not None else "")
        elif kind not in wordless:
            words, author = _value(note, b"Contents"), _value(note, b"T")
            found.append(f"{author}: {words}" if author and words else words)
    return "\n".join(dict.fromkeys(words for words in found if words))


def pinned_files(page: Any) -> Iterator[tuple[str, bytes | None]]:
    """Name and bytes of the files that are pinned to a page as a remark; None for one that is not in the PDF or is broken."""
    import pypdfium2
    import pypdfium2.raw as raw

    for note in _annotations(page):
        if raw.FPDFAnnot_GetSubtype(note) == raw.FPDF_ANNOT_FILEATTACHMENT:
            file = raw.FPDFAnnot_GetFileAttachment(note)
            if file:
                attachment = pypdfium2.PdfAttachment(file, page.pdf)
                data: bytes | None = None
                with contextlib.suppress(pypdfium2.PdfiumError):
                    data = bytes(attachment.get_data())
                yield normalise(attachment.get_name()), data


def _annotations(page: Any) -> Iterator[Any]:
    import pypdfium2.raw as raw

    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, index)
        if note:
            try:
                yield note
            finally:
                raw.FPDFPage_CloseAnnot(note)


def _field(form: Any, note: Any) -> str:
    """`name: value` of a filled field; "" for an empty one, a button and a signature."""
    import pypdfium2.raw as raw

    kind = raw.FPDFAnnot_GetFormFieldType(form, note)
    if kind in (_PUSHED, _SIGNED):
        return ""
    name = _read(raw.FPDFAnnot_GetFormFieldAlternateName, form, note) or _read(
        raw.FPDFAnnot_GetFormFieldName, form, note
    )
    if kind in _CHOSEN:
        if not raw.FPDFAnnot_IsChecked(form, note):
            return ""
        chosen = _read(raw.FPDFAnnot_GetFormFieldExportValue, form, note)
        return f"{name}: {chosen or 'yes'}"
    value = _read(raw.FPDFAnnot_GetFormFieldValue, form, note)
    return f"{name}: {value}" if name and value else value


def _value(note: Any, key: bytes) -> str:
    import pypdfium2.raw as raw

    return _read(raw.FPDFAnnot_GetStringValue, note, key)


def _read(ask: Any, *arguments: Any) -> str:
    """A string of PDFium's: asked for its length in bytes first, then for itself (UTF-16 with a zero at its end)."""
    import pypdfium2.raw as raw

    size = ask(*arguments, None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    ask(*arguments, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
    text = buffer.raw[: size - 2].decode("utf-16-le", "replace")
    return "\n".join(line.strip() for line in normalise(text).split("\n") if line.strip())
