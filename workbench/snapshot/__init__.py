"""Snapshots: results in one file that can be shared, opened again, verified and compared.

A snapshot is a zip: `manifest.json` with the digests of all parts, Parquet and YAML parts with the data, and `index.html`,
which opens in any browser without a server. The data is the truth and the page is drawn from it; whoever serves or exports a
snapshot draws the page again and never passes on the one in the file.

`schema` is what a snapshot holds, `archive` its bytes; `build` makes one from results and leaves out what somebody may not see;
`verify`, `diff`, `exports` and `page` are what can be done with it; `snapshot` has the value itself and a corpus's library.
"""

from __future__ import annotations

from workbench.snapshot.snapshot import Snapshot

__all__ = ["Snapshot"]
