"""Snapshots: results in one file that can be shared, opened again, verified and compared.

A snapshot is a zip: `manifest.json` with the digests of all parts, Parquet and YAML parts with the data, and `index.html`,
which opens in any browser without a server. The data is the truth and the page is drawn from it; whoever serves or exports a
snapshot draws the page anew and never passes on the one in the file.

`model` is what a snapshot holds, `parts` its bytes, `archive` the zip; `capture` makes one from results; `audience` leaves out
what somebody may not see; `checking`, `diff`, `exports`, `page` and `shelf` are what can be done with it.
"""

from __future__ import annotations

from workbench.snapshot.snapshot import Snapshot

__all__ = ["Snapshot"]
