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
# # Compare snapshots: what changed, and why
#
# "It was third last week." A result is true of one corpus, one plan and one moment, and a snapshot keeps all three in one file.
# This notebook saves one, then changes the plan, then the documents, saves each time, and lets the files say what differs and
# what it comes from: the setting, the documents, or both.

# %% tags=["parameters"]
folder = "snapshots"  # where the notes, the corpus and the snapshots go
encoder = None  # None: the setting; "hashing" needs no model

# %%
import json
from pathlib import Path

import polars as pl

import workbench as wb

pl.Config.set_tbl_rows(20)
pl.Config.set_fmt_str_lengths(90)
place = Path(folder)
notes = place / "notes"
notes.mkdir(parents=True, exist_ok=True)
options = {} if encoder is None else {"encoder": encoder}

# %% [markdown]
# ## A corpus of a dozen notes, and four judged questions
#
# A judgment says which document answers a question; questions and grades are two files, as BEIR has them.

# %%
notes_now = {
    "retries": "A request that fails is sent again after a pause of one second.",
    "timeouts": "A request that gets no answer within ten seconds fails.",
    "queues": "Jobs wait in a queue until a worker takes them; a job that fails goes back to its end.",
    "caching": "Answers are kept for an hour, and dropped when the document changes.",
    "logging": "Every request is written to the log with its time and its outcome.",
    "backups": "The database is copied every night, and a copy is restored every month as a test.",
    "alerts": "When the error rate is above one percent, somebody is called.",
    "deploys": "A new version goes to one machine first; after an hour without errors, to all.",
    "secrets": "Passwords live in the vault. They are changed every ninety days.",
    "quotas": "A customer may send a hundred requests a second; more are refused.",
    "paging": "Lists come in pages of fifty rows, with a cursor for the next.",
    "search": "Search answers from an index that is built again every night.",
}
questions = {
    "what happens when a request fails": "retries",
    "who is told about errors": "alerts",
    "can we get lost data back": "backups",
    "too many calls from one client": "quotas",
}
asked = [json.dumps({"_id": str(n), "text": text}) for n, text in enumerate(questions)]
graded = [f"{n}\t{topic}.md\t1" for n, topic in enumerate(questions.values())]
(place / "queries.jsonl").write_text("\n".join(asked), encoding="utf-8")
(place / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *graded]), encoding="utf-8")


def write(texts):
    """Write notes, and index the folder."""
    for topic, text in texts.items():
        (notes / f"{topic}.md").write_text(f"# {topic.capitalize()}\n\n{text}\n", encoding="utf-8")
    return wb.index([notes], corpus=place / "corpus", **options)


write(notes_now)
judgments = wb.load_judgments(place, name="four questions")

# %% [markdown]
# ## Three moments
#
# `before` is where we start. `replanned` has another plan on the same documents. `edited` has the first plan again, on other
# documents: one note changed, one added, one gone. Each snapshot holds a search and the measures of the four questions.

# %%
question = next(iter(questions))
first, second = wb.preset("rrf"), wb.preset("rrf").replace({"fusion.k": 5, "fusion.weights.vector": 0.25})


def moment(plan, note):
    """A snapshot of one search and one evaluation, and whether asking the corpus again gives the same."""
    with wb.open_corpus(place / "corpus") as corpus:
        found = corpus.search(question, plan=plan)
        measured = corpus.evaluate(judgments, plan=plan, measures=["nDCG@10", "RR"])
        made = wb.Snapshot.of([found, measured], note=note)
        return made, made.verify(corpus)


before, before_verified = moment(first, "where we start")
replanned, replanned_verified = moment(second, "another plan")

(notes / "queues.md").unlink()
edits = {
    "alerts": "When a request fails three times, somebody is called.",
    "failures": "What happens when a request fails: it is sent again.",
}
write(edits)
edited, edited_verified = moment(first, "other documents")

for name, made in (("before", before), ("replanned", replanned), ("edited", edited)):
    made.save(place / f"{name}.snapshot")
before_verified

# %% [markdown]
# Is `before` still what the corpus answers? The corpus has changed, so its numbers cannot be computed again, as the check reports:

# %%
with wb.open_corpus(place / "corpus") as corpus:
    stale = before.verify(corpus)
print(stale.verdict)

# %% [markdown]
# ## What differs, in words
#
# From here on the files are enough: no corpus is opened. A diff calls its snapshots A, B, C in the order given.

# %%
before, replanned, edited = (wb.Snapshot.load(place / f"{name}.snapshot") for name in ("before", "replanned", "edited"))
plan_changed, documents_changed = before.diff(replanned), before.diff(edited)
for name, difference in (("Another plan:", plan_changed), ("Other documents:", documents_changed)):
    print(name, *difference.sentences, sep="\n  ")

# %% [markdown]
# The same as tables: which settings, which documents, and what each did to the results.

# %%
plan_changed.settings()

# %%
documents_changed.documents().select("change", "path")

# %% [markdown]
# Every result, with its rank then and now, and why it moved:

# %%
documents_changed.ranks()

# %% [markdown]
# ## Seen
#
# All three at once. A line is a result; one that ends is a result that is gone, a lone point is one that is new.

# %%
three = before.diff(replanned, edited)
three.figure()

# %% [markdown]
# ## Is it better?
#
# A list that changed is not a list that got worse. The measures of the two moments, question by question, say whether it did;
# with four questions they mostly say that four questions are few. Here the wrong note comes first: `failures.md` repeats the
# question and answers nothing, which is what a measure sees and a list does not.

# %%
three.measures().select("snapshot", "measure", "first", "second", "difference", "verdict")

# %% [markdown]
# ## For somebody else
#
# Citations without the texts, and a page that opens in any browser, with no server. `workbench snapshot diff
# before.snapshot edited.snapshot` says the same as above in a terminal, and the Snapshots page of the app shows it.

# %%
shared = edited.redacted()
shared.save(place / "shared.snapshot")
(place / "shared.html").write_text(shared.html(), encoding="utf-8")
shared

# %% [markdown]
# ## Now with your own
#
# * Before you change a setting or the documents: `corpus.search("a question").snapshot("before the move").save("before.snapshot")`.
#   Afterwards the same under another name, and `wb.Snapshot.load("before.snapshot").diff(wb.Snapshot.load("after.snapshot"))`.
# * `wb.Snapshot.of([found, measured], note=...)` holds several searches and measures, as above; `verify` says whether the corpus
#   still gives the same.
# * In a terminal: `workbench snapshot save "a question" "another"`, then `list`, `diff` and `verify`. In the app: Snapshots.

# %% [markdown]
# ## What this notebook claims, checked

# %%
# A snapshot agrees with its corpus until the corpus changes; then `verify` reports it.
assert all(one.ok and one.ran for one in (before_verified, replanned_verified, edited_verified))
assert stale.ok and not stale.ran

# The file is the snapshot, to the byte.
assert before.to_bytes() == (place / "before.snapshot").read_bytes()
assert wb.Snapshot.load(before.to_bytes()) == before

# The causes are separated: of one diff settings and no document, of the other documents and no setting.
assert {row["setting"] for row in plan_changed.settings().to_dicts()} == {"fusion.k", "fusion.weights.vector"}
assert plan_changed.documents().is_empty() and documents_changed.settings().is_empty()
assert dict(documents_changed.documents().select("path", "change").iter_rows()) == {
    "alerts.md": "changed",
    "failures.md": "added",
    "queues.md": "removed",
}
assert "corpus" not in plan_changed.results()["why"][0] and "setting" not in documents_changed.results()["why"][0]

# A result that is new, and one that is gone, say so, and why.
why = {row["citation"].split(":")[0]: (row["A"], row["B"], row["why"]) for row in documents_changed.ranks().to_dicts()}
assert why["failures.md"] == (None, 1, "its document was added")
assert why["queues.md"][1:] == (None, "its document was removed")
assert why["alerts.md"][2] == "its document changed"

# Nothing differs from itself.
same = before.diff(before)
assert same.settings().is_empty() and same.documents().is_empty()
assert set(same.results()["rbo"]) == {1.0} and set(same.measures()["difference"]) == {0.0}

# The measures in the files are the measures that were taken.
assert three.measures().select("snapshot", "measure").rows() == [(n, m) for n in "BC" for m in ("nDCG@10", "RR")]

assert all(hit.text == "" and hit.citation for hit in shared.hits())
assert (place / "shared.html").stat().st_size < 8_000_000
