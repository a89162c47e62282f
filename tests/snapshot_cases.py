"""Snapshots for tests: small ones, without the pictures' library, that are made in no time."""

import io
import zipfile
from collections.abc import Callable, Mapping

import workbench as wb
from workbench.snapshot import archive
from workbench.snapshot.schema import About, Content

PAGE = b"<!doctype html><title>small</title>"


def small(about: About, content: Content, **changed: bytes) -> wb.Snapshot:
    """A snapshot of a content whose page is a line; parts may be given other bytes (`searches_yaml=b"..."`)."""
    data = {**archive.write_parts(content), archive.PAGE: PAGE}
    for name, value in changed.items():
        stem, _, suffix = name.rpartition("_")
        data[f"{stem}.{suffix}"] = value
    return wb.Snapshot(archive.describe(about, data), data)


def shrunk(snapshot: wb.Snapshot) -> wb.Snapshot:
    return small(snapshot.about, snapshot.content)


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def zipped(files: Mapping[str, bytes], each: Callable[[zipfile.ZipInfo], None] | None = None) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if each is not None:
                each(info)
            out.writestr(info, data)
    return file.getvalue()
