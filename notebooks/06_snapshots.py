# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Snapshots: what changed, and why
#
# A result is true of one corpus, one set of settings and one moment. This notebook saves one, edits three documents and one
# setting, saves another, and lets the two files say what is different.

# %% tags=["parameters"]
folder = "snapshots"  # where the notes, the corpus and the snapshots go
encoder = None  # None: the setting; "hashing" needs no model

# %%
from pathlib import Path

import polars as pl

import workbench as wb

pl.Config(tbl_rows=20, fmt_str_lengths=80)
place = Path(folder)
notes = place / "notes"
notes.mkdir(parents=True, exist_ok=True)
options = {} if encoder is None else {"encoder": encoder}

# %% [markdown]
# ## A corpus of a dozen notes

# %%
topics = ["retries", "timeouts", "queues", "caching", "logging", "backups", "alerts", "deploys", "secrets", "quotas", "paging", "search"]
for topic in topics:
    text = f"# {topic.capitalize()}\n\nHow {topic} work here. A request that fails is sent again after a pause; see also {topic}.\n"
    (notes / f"{topic}.md").write_text(text, encoding="utf-8")
wb.index([notes], corpus=place / "corpus", **options)

# %% [markdown]
# ## Before
#
# `snapshot` keeps everything about a result: rows, passages, settings, and where it came from. `verify` asks the corpus again.

# %%
question = "what happens when a request fails"
with wb.open_corpus(place / "corpus") as corpus:
    before = corpus.search(question).snapshot(note="before the edit")
    checked = before.verify(corpus)
before.save(place / "before.snapshot")
checked

# %% [markdown]
# ## Three edits, one setting

# %%
(notes / "retries.md").write_text("# Retries\n\nA request that fails is sent again, three times, after a growing pause.\n", encoding="utf-8")
(notes / "caching.md").write_text("# Caching\n\nAnswers are kept for a minute.\n", encoding="utf-8")
(notes / "alerts.md").write_text("# Alerts\n\nWhen a request fails, somebody is woken.\n", encoding="utf-8")
wb.index([notes], corpus=place / "corpus", **options)
with wb.open_corpus(place / "corpus") as corpus:
    after = corpus.search(question, plan="default fusion.k=10").snapshot(note="after the edit")
    stale = before.verify(corpus)
after.save(place / "after.snapshot")
print(stale.verdict)

# %% [markdown]
# ## What differs
#
# The files are enough: no corpus is opened here.

# %%
one, two = wb.Snapshot.load(place / "before.snapshot"), wb.Snapshot.load(place / "after.snapshot")
difference = one.diff(two)
for sentence in difference.sentences:
    print(sentence)

# %%
difference.ranks()

# %%
difference.figure()

# %% [markdown]
# ## For somebody else
#
# Citations without the text, and a page that opens by itself.

# %%
shared = two.redacted()
shared.save(place / "shared.snapshot")
(place / "shared.html").write_text(shared.html(), encoding="utf-8")
shared

# %% [markdown]
# ## What this notebook claims, checked

# %%
assert checked.ok and checked.ran
assert stale.ok and not stale.ran
assert one == before and one.to_bytes() == before.to_bytes()
assert difference.settings().rows() == [(question, "fusion.k", "60", "10")]
assert sorted(difference.documents()["path"]) == ["alerts.md", "caching.md", "retries.md"]
assert set(difference.documents()["change"]) == {"changed"}
assert all(hit.text == "" and hit.citation for hit in shared.hits())
assert (place / "shared.html").stat().st_size < 8_000_000
