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
# # A first look
#
# What finds the right passage: exact words, BM25, embeddings, or a mix? This notebook asks that question of a corpus that
# every machine has, the documentation and the library of the Python that runs it, and answers it with figures.
#
# It indexes (about a minute the first time), searches in four modes, looks at one result closely, and evaluates all modes on
# judged questions.

# %% tags=["parameters"]
folder = "demo"  # where the files and the corpus go
encoder = None  # None: the setting; "hashing" needs no model and finds no meaning

# %%
from pathlib import Path

import polars as pl

import workbench as wb

_ = pl.Config.set_tbl_rows(20).set_fmt_str_lengths(60)

# %% [markdown]
# ## Index
#
# `demo_files` writes the files, `index` makes a corpus of them. Indexing again reuses what did not change.

# %%
files = wb.demo_files(Path(folder) / "files")
options = {} if encoder is None else {"encoder": encoder}
report = wb.index([files], corpus=Path(folder) / "corpus", collection="docs", **options)
again = wb.index([files], corpus=Path(folder) / "corpus", collection="docs", **options)
print(f"{report.documents} documents, {report.chunks} chunks, {len(report.warnings)} warnings")
print(f"again: {again.embedded} texts embedded")

# %%
corpus = wb.open_corpus(Path(folder) / "corpus")
info = corpus.info()
{key: info[key] for key in ("documents", "records", "types", "languages", "encoders")}

# %% [markdown]
# ## Search in four modes
#
# The answer is `enum.Enum`, and the question does not know its name. `keywords` are the words for grep; the other modes
# read the question as it is typed. The plan `rrf` adds up ranks, with k = 60: the usual hybrid.

# %%
question = "a fixed set of named constants"
modes = ("grep", "keyword", "vector", "hybrid")
keywords = {"grep": "constants named"}
results = {mode: corpus.search(question, keywords=keywords.get(mode), mode=mode, plan="rrf") for mode in modes}
pl.DataFrame({mode: [hit.citation for hit in results[mode].hits[:5]] for mode in modes}, strict=False)

# %% [markdown]
# ## Why this order?
#
# Every candidate of the hybrid search, with its rank and score in each source and what each source added to its score.

# %%
result = results["hybrid"]
result.frame().head(5)

# %% [markdown]
# The funnel says how many candidates entered and left each step, and why.

# %%
result.funnel()

# %% [markdown]
# `explain` says where any document stands, also one that is not among the results.

# %%
explanation = corpus.explain(result, "lib/dataclasses.py")
explanation

# %% [markdown]
# ## Another setting, without searching again
#
# A plan is a value with a text form. `with_plan` fuses what was retrieved again; that is what a slider does.

# %%
steeper = result.with_plan("rrf fusion.k=1")
for name, one in (("k = 60", result), ("k = 1", steeper)):
    print(name, [hit.citation for hit in one.hits[:3]])

# %% [markdown]
# ## Which mode is best here?
#
# One question proves nothing. The demo comes with judged questions: for each, the files that answer it. Grep gets their
# keywords, which are words of the question; the other modes read the question as typed.

# %%
judgments = wb.demo_judgments()
measures = ["nDCG@10", "Success@1", "R@100"]
contenders = {mode: (mode, "rrf") for mode in modes} | {"tmm": ("hybrid", "tmm")}
evaluations = {
    name: corpus.evaluate(
        judgments if mode == "grep" else judgments.without_keywords(), plan=plan, measures=measures, mode=mode
    ).named(name)
    for name, (mode, plan) in contenders.items()
}
pl.concat([e.frame().insert_column(0, pl.lit(name).alias("what")) for name, e in evaluations.items()])

# %% [markdown]
# Is a difference more than luck? `compare` answers with an interval over the questions and a randomisation test.

# %%
for name in ("grep", "keyword", "vector", "tmm"):
    print(evaluations["hybrid"].compare(evaluations[name], "nDCG@10").verdict)

# %% [markdown]
# And question by question: each mode is the best for some.

# %%
table = evaluations["grep"].per_query().select("query").with_columns(
    pl.Series(name, evaluation.column("nDCG@10")) for name, evaluation in evaluations.items()
)
table.head(12)

# %% [markdown]
# ## What this notebook claims, checked

# %%
assert report.found == sum(report.count(status) for status in ("indexed", "unchanged", "skipped", "failed"))
assert report.count("failed") == 0
assert again.embedded == 0
assert not again.changed

assert all(results[mode].hits for mode in modes)
for hit in result.hits:
    assert abs(hit.score - sum(hit.contributions.values())) < 1e-12
assert result.funnel()["left"][-1] == len(result.hits)
assert [hit.rank for hit in steeper.hits] == list(range(1, len(steeper.hits) + 1))

means = {name: evaluation.mean("nDCG@10") for name, evaluation in evaluations.items()}
assert len(judgments) == 69
assert all(0 < value < 1 for value in means.values())
best = table.select(modes).to_numpy()
for column, mode in enumerate(modes):
    others = [c for c in range(len(modes)) if c != column]
    assert (best[:, column] > best[:, others].max(axis=1)).any(), f"{mode} is nowhere the best alone"

if encoder is None:
    assert 4_000 <= report.chunks <= 8_000
    assert means["hybrid"] > max(means["grep"], means["keyword"], means["vector"])
    assert means["tmm"] > max(means["grep"], means["keyword"], means["vector"])

corpus.close()
