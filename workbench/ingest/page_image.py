"""One page of a PDF as a picture, by pypdfium2: what a citation that names a page stands on.

A page says its own size, up to anything; the picture is held within bounds whatever it says.
"""

from __future__ import annotations

import io

from workbench.errors import UsageError
from workbench.ingest.readers.pdf import LOCK

WIDTH, HEIGHT = 1_100, 1_700
"""Most pixels of a picture."""


def page_png(data: bytes, page: int) -> bytes:
    """A page as PNG.

    Args:
        data: The PDF's bytes.
        page: From 1.

    Raises:
        UsageError: The file or the page cannot be drawn.
    """
    import pypdfium2

    with LOCK:
        try:
            document = pypdfium2.PdfDocument(data)
            try:
                if not 1 <= page <= len(document):
                    raise UsageError(
                        f"The file has {len(document):,} pages and none numbered {page:,}", "Choose another page"
                    )
                sheet = document[page - 1]
                width, height = sheet.get_size()
                scale = min(WIDTH / max(width, 1.0), HEIGHT / max(height, 1.0))
                picture = sheet.render(scale=scale).to_pil()
            finally:
                document.close()
        except (pypdfium2.PdfiumError, ValueError, RuntimeError, MemoryError) as exc:
            raise UsageError(f"Page {page:,} cannot be drawn: {exc}", "Read its text instead") from exc
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
