"""The zip of a snapshot: written the same way each time, read with suspicion.

`manifest.json` names every part with its size and sha256, and carries the digest of itself, so that every byte of a snapshot's
content is covered. The digests say that nothing changed since it was saved; they do not say who saved it, for whoever can write
a file can write digests. `Snapshot.verify` with a corpus asks the corpus.

Nothing is ever unpacked to disk. Names are looked up in the list of parts that the schema knows, sizes are bounded before and
while unpacking, and every fault of a file is one `SnapshotError`.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from workbench.errors import SnapshotError, SnapshotNewer
from workbench.records import EncoderIdentity, Principal
from workbench.snapshot import parts as data_parts
from workbench.snapshot.model import SCHEMA, About, Audience, Origin, Passages

MANIFEST, PAGE = "manifest.json", "index.html"
MOST_FILE_BYTES = 512 << 20
MOST_UNPACKED_BYTES = 1 << 29
MOST_MANIFEST_BYTES, MOST_PAGE_BYTES = 4 << 20, 32 << 20
MOST_RATIO = 1_000
_SMALL = 1 << 20
_KIND = "workbench snapshot"
_TIME = (1980, 1, 1, 0, 0, 0)
_AGAIN = "Ask for the file again, or make a new snapshot"
_FAULTS = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError,
    NotImplementedError, LookupError, OverflowError, AttributeError, TypeError,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the file says of itself.

    Attributes:
        about: Where it comes from.
        parts: Part -> (bytes, sha256 hex).
        digest: sha256 hex of all the above in its canonical form.
        schema: The schema that it was written with.
    """

    about: About
    parts: Mapping[str, tuple[int, str]]
    digest: str
    schema: int = SCHEMA

    @property
    def id(self) -> str:
        """The snapshot's id, 16 hex digits of the digest."""
        return self.digest[:16]


def describe(about: About, parts: Mapping[str, bytes]) -> Manifest:
    """The manifest of some parts."""
    named = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in sorted(parts.items())}
    return Manifest(about, named, hashlib.sha256(_canonical(about, named, SCHEMA)).hexdigest())


def to_bytes(manifest: Manifest, parts: Mapping[str, bytes]) -> bytes:
    """The file. The same manifest and parts give the same bytes: times are fixed, names sorted, the manifest first."""
    file = io.BytesIO()
    body = json.loads(_canonical(manifest.about, manifest.parts, manifest.schema)) | {"digest": manifest.digest}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for name, data in ((MANIFEST, _json(body, indent=1)), *sorted(parts.items())):
            info = zipfile.ZipInfo(name, _TIME)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            # Parquet is compressed already.
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            zipped.writestr(info, data)
    return file.getvalue()


def from_bytes(data: bytes) -> tuple[Manifest, dict[str, bytes]]:
    """Manifest and parts of a file, every digest checked.

    Raises:
        SnapshotNewer: The file was written by a newer version.
        SnapshotError: It is no snapshot, is damaged, lacks a part, or unfolds into too much.
    """
    if len(data) > MOST_FILE_BYTES:
        raise SnapshotError(f"The file has {len(data):,} bytes, more than a snapshot may have", _AGAIN)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            infos = _listed(zipped)
            manifest = _manifest(_unpacked(zipped, infos, MANIFEST, MOST_MANIFEST_BYTES))
            parts = {}
            for name, (size, digest) in manifest.parts.items():
                if name not in infos:
                    raise SnapshotError(f"The snapshot lacks its part {name}", _AGAIN)
                parts[name] = _unpacked(zipped, infos, name, size)
                if len(parts[name]) != size or hashlib.sha256(parts[name]).hexdigest() != digest:
                    raise SnapshotError(f"The snapshot's part {name} was changed after it was saved", _AGAIN)
            extra = sorted(set(infos) - {MANIFEST} - set(manifest.parts))
            if extra:
                raise SnapshotError(f"The snapshot has the part {extra[0]}, which its manifest does not name", _AGAIN)
            return manifest, parts
    except SnapshotError:
        raise
    except _FAULTS as exc:
        raise SnapshotError("The file is no snapshot, or is damaged: it cannot be read as a zip", _AGAIN) from exc


def _listed(zipped: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name. Raises SnapshotError for names and sizes that no snapshot has."""
    infos: dict[str, zipfile.ZipInfo] = {}
    for info in zipped.infolist():
        name = info.orig_filename
        if ".." in name.replace("\\", "/").split("/") or name.startswith(("/", "\\")) or name[1:2] == ":":
            raise SnapshotError(
                "The file names a path outside itself, which no snapshot does", "Do not trust this file"
            )
        if name in infos:
            raise SnapshotError(f"The file has the part {name!a} twice", "Do not trust this file")
        if info.flag_bits & 0x1:
            raise SnapshotError("The file is encrypted, which no snapshot is", _AGAIN)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SnapshotError(f"The part {name!a} is packed in a way that no snapshot is", _AGAIN)
        if info.file_size > _SMALL and info.file_size > MOST_RATIO * max(info.compress_size, 1):
            raise SnapshotError(
                f"The part {name!a} unfolds from {info.compress_size:,} into {info.file_size:,} bytes",
                "Do not trust this file",
            )
        most = {MANIFEST: MOST_MANIFEST_BYTES, PAGE: MOST_PAGE_BYTES}.get(
            name, data_parts.MOST_YAML_BYTES if name.endswith(".yaml") else MOST_UNPACKED_BYTES
        )
        if info.file_size > most:
            raise SnapshotError(
                f"The part {name!a} unfolds into {info.file_size:,} bytes, more than the {most:,} that it may have",
                "Do not trust this file",
            )
        infos[name] = info
    total = sum(info.file_size for info in infos.values())
    if total > MOST_UNPACKED_BYTES:
        raise SnapshotError(
            f"The file unfolds into {total:,} bytes, more than the {MOST_UNPACKED_BYTES:,} that a snapshot may have",
            "Do not trust this file",
        )
    if MANIFEST not in infos:
        raise SnapshotError("The file is a zip, but no snapshot: it has no manifest.json", _AGAIN)
    return infos


def _unpacked(zipped: zipfile.ZipFile, infos: Mapping[str, zipfile.ZipInfo], name: str, most: int) -> bytes:
    """A member's bytes, at most `most` of them. Raises SnapshotError for more, or for what cannot be unpacked."""
    if infos[name].file_size > most:
        raise SnapshotError(f"The snapshot's part {name} was changed after it was saved: it is too long", _AGAIN)
    try:
        with zipped.open(infos[name]) as member:
            return member.read(most + 1)
    except _FAULTS as exc:
        raise SnapshotError(f"The snapshot's part {name} is damaged", _AGAIN) from exc


# --- the manifest ----------------------------------------------------------------------------------------------------


def _json(values: Any, indent: int | None = None) -> bytes:
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(values, sort_keys=True, ensure_ascii=True, indent=indent, separators=separators).encode("ascii")


def _canonical(about: About, parts: Mapping[str, tuple[int, str]], schema: int) -> bytes:
    listed = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in parts.items()}
    return _json({"kind": _KIND, "schema": schema, "about": asdict(about), "parts": listed})


def _manifest(data: bytes) -> Manifest:
    """The manifest of its bytes, its digest checked. Raises SnapshotError, SnapshotNewer."""
    try:
        body = json.loads(data.decode("ascii"))
        schema, kind = body["schema"], body["kind"]
    except (ValueError, LookupError, TypeError, RecursionError) as exc:
        raise SnapshotError("The snapshot's manifest.json is damaged", _AGAIN) from exc
    if kind != _KIND:
        raise SnapshotError("The file is a zip, but no snapshot of the workbench", _AGAIN)
    if isinstance(schema, int) and schema > SCHEMA:
        raise SnapshotNewer(
            f"The snapshot has schema {schema}, and this version of the workbench reads up to {SCHEMA}",
            "Open it with a newer version of the workbench; its index.html opens in any browser",
        )
    try:
        said = body.pop("digest")
        if hashlib.sha256(_json(body)).hexdigest() != said:
            raise SnapshotError("The snapshot's manifest.json was changed after it was saved", _AGAIN)
        parts = {str(n): (int(p["bytes"]), str(p["sha256"])) for n, p in body["parts"].items()}
        manifest = Manifest(_about(body["about"]), parts, str(said), int(schema))
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise SnapshotError("The snapshot's manifest.json does not have the form of its schema", _AGAIN) from exc
    unknown = sorted(set(parts) - {PAGE, *data_parts.NAMES})
    lacking = [n for n in (PAGE, *data_parts.ALWAYS) if n not in parts]
    if unknown or lacking:
        what = f"names the part {unknown[0]!a}, which its schema does not know" if unknown else f"lacks {lacking[0]}"
        raise SnapshotError(f"The snapshot's manifest.json {what}", _AGAIN)
    if _canonical(manifest.about, manifest.parts, manifest.schema) != _json(body):
        raise SnapshotError("The snapshot's manifest.json does not have the form of its schema", _AGAIN)
    return manifest


def _about(v: Mapping[str, Any]) -> About:
    """Where it comes from; TypeError for a value that is not of its type, whatever the digest says."""
    origin, who, audience = v["origin"], v["principal"], v["audience"]
    return About(
        created=_text(v["created"]), by=_text(v["by"]), note=_text(v["note"]),
        principal=None if who is None else Principal(*_named(who)),
        origin=Origin(
            _text(origin["generation"]), _text(origin["digest"]), _whole(origin["documents"]), _whole(origin["records"]),
            tuple(_encoder(e) for e in origin["encoders"]),
        ),
        packages={_text(k): _text(x) for k, x in v["packages"].items()}, passages=Passages(v["passages"]),
        audience=None if audience is None else Audience(*_named(audience)),
        policy=_text(v["policy"]), omitted=v["omitted"] is True,
    )  # fmt: skip


def _encoder(v: Mapping[str, Any]) -> EncoderIdentity:
    return EncoderIdentity(
        _text(v["name"]), _text(v["digest"]), _text(v["runtime"]), _whole(v["dim"]), _whole(v["max_tokens"])
    )


def _named(v: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    tenant = v["tenant"]
    return None if tenant is None else _text(tenant), tuple(_text(r) for r in v["roles"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text should be")
    return value


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} where a whole number should be")
    return value
