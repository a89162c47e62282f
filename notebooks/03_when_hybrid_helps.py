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
# # When hybrid helps, and when it hurts
#
# "Hybrid is better" is true of means, of some collections, and never of every question. This notebook looks question by
# question: against each source alone, against the better of the two, and by what the questions look like.
#
# It measures the judged collections in the folder that the setting `measure_data` (`WORKBENCH_MEASURE_DATA`) names, the smallest
# first, as many as have at most `most_documents` documents together; where there are none, a part of the demo's files. Either
# takes under a minute on two cores. For your own documents, put your corpus and your judgments into `judged` below.

# %% tags=["parameters"]
folder = "demo"  # where corpora go
encoder = None  # None: the setting; "hashing" needs no model and finds no meaning
measure = "nDCG@10"
most_documents = 1_500  # of all collections together: a thousand abstracts are indexed in about 20 seconds
small = True  # of the demo: False takes all of its files and questions

# %%
import re
from pathlib import Path

import numpy as np
import polars as pl

import workbench as wb

_ = pl.Config.set_tbl_rows(20).set_tbl_cols(12).set_fmt_str_lengths(70)


def lines(file):
    with file.open(encoding="utf-8") as opened:
        return sum(1 for _ in opened)


options = {} if encoder is None else {"encoder": encoder}
sizes = {name: lines(source / "corpus.jsonl") for name, source in wb.judged_collections().items()}
judged, room = {}, most_documents  # name -> (corpus, judgments)
for name, source in sorted(wb.judged_collections().items(), key=lambda one: (sizes[one[0]], one[0])):
    room -= sizes[name]
    if room < 0:
        break
    place = Path(folder) / "collections" / name
    wb.index([source], corpus=place, one_chunk_per_document=True, progress=wb.progress_line(), **options)
    judged[name] = (wb.open_corpus(place), wb.load_judgments(source))
if not judged:
    files = wb.demo_files(Path(folder) / "files", small=small)
    wb.index([files], corpus=Path(folder) / "corpus", collection="docs", progress=wb.progress_line(), **options)
    judged["demo"] = (wb.open_corpus(Path(folder) / "corpus"), wb.demo_judgments(files).without_keywords())
for name, (corpus, judgments) in judged.items():
    print(f"{name}: {corpus.info()['documents']:,} documents, {len(judgments)} judged questions")

# %% [markdown]
# ## Each source alone, and two ways to mix them
#
# `rrf` adds up ranks; `tmm` adds up scores on a common scale, 0.8 of the vector side's and 0.2 of the keyword side's. Both are
# used as they come, tuned on none of these questions. The threshold is off, so that nothing but the mixing differs.

# %%
off = {"vector.threshold": "off"}
plans = {
    "keyword": wb.preset("rrf").replace({"sources": "keyword", **off}),
    "vector": wb.preset("rrf").replace({"sources": "vector", **off}),
    "rrf": wb.preset("rrf").replace(off),
    "tmm": wb.preset("tmm").replace(off),
}
evaluations = {
    name: {label: corpus.evaluate(judgments, plan=plan, measures=measure).named(label) for label, plan in plans.items()}
    for name, (corpus, judgments) in judged.items()
}
queries = pl.concat(
    evaluations[name]["keyword"]
    .per_query()
    .select(pl.lit(name).alias("collection"), "query_id", "query")
    .with_columns(pl.Series(label, one.column(measure)) for label, one in evaluations[name].items())
    for name in judged
)
queries.group_by("collection", maintain_order=True).agg(pl.len().alias("questions"), pl.mean(*plans).round(3))

# %% [markdown]
# ## Against the better source alone
#
# This is the comparison that counts: somebody who knew which source is better here would use that one. The bar is the 95 %
# interval of the difference; a bar across zero means that these questions cannot tell.

# %%
better = {name: max(("keyword", "vector"), key=lambda label: ones[label].mean(measure)) for name, ones in evaluations.items()}
worse = {name: {"keyword": "vector", "vector": "keyword"}[label] for name, label in better.items()}
differences = {name: ones[better[name]].compare(ones["tmm"], measure) for name, ones in evaluations.items()}
for name, difference in differences.items():
    print(f"{name}: {difference.verdict}")

figure = wb.charts.means_figure(
    [(f"{name}: tmm minus {better[name]}", d.difference, d.low, d.high) for name, d in differences.items()]
)
figure.update_xaxes(zeroline=True, zerolinecolor="grey", autorange=True, title_text=f"{measure}, difference")

# %% [markdown]
# ## Question by question
#
# Green: the mix is better than the better source alone; red: worse. There is always some red.

# %%
name = max(judged, key=lambda n: len(judged[n][1]))
wins = evaluations[name][better[name]].wins(evaluations[name]["tmm"], measure)
wb.charts.wins_figure(wins, measure, (f"{better[name]} alone", "tmm"))

# %% [markdown]
# The questions that lose most. The usual reason: one source has the answer near its top, and the other has never heard of it
# but brings other things that both find so-so.

# %%
queries = queries.with_columns(
    better=pl.max_horizontal("keyword", "vector"), coin=pl.mean_horizontal("keyword", "vector")
).with_columns(against_better=pl.col("tmm") - pl.col("better"), against_coin=pl.col("tmm") - pl.col("coin"))
queries.sort("against_better").head(8).select("collection", "query", "keyword", "vector", "tmm", "against_better")

# %% [markdown]
# ## Does one source alone find it?
#
# Hindsight again, over all questions: `against_better` is the mix against whichever source did better *on that question*,
# which nobody knows before. Where both sources find something relevant in their first ten, mixing costs next to nothing, or gains.
# Where only one does, mixing dilutes.


# %%
def interval(values, seed=0):
    """Ends of the 95 % bootstrap interval of a mean."""
    values = np.asarray(values)
    drawn = np.random.default_rng(seed).integers(0, len(values), (5_000, len(values)))
    return tuple(np.quantile(values[drawn].mean(axis=1), [0.025, 0.975]).tolist()) if len(values) > 1 else (None, None)


def split(frame, by, of):
    """A row a group: how many questions, the mean of a column, and its interval."""
    rows = []
    for (group,), part in frame.group_by(by, maintain_order=True):
        rows.append((group, part.height, *part.select(pl.mean("keyword", "vector", "tmm", of)).row(0), *interval(part[of])))
    columns = [by, "questions", "keyword", "vector", "tmm", of, "low", "high"]
    return pl.DataFrame(rows, schema=columns, orient="row").sort(by).with_columns(pl.selectors.float().round(3))


found_by = (pl.col("keyword") > 0).cast(pl.Int8) + (pl.col("vector") > 0).cast(pl.Int8)
queries = queries.with_columns(found_by=found_by)
split(queries, "found_by", "against_better")

# %% [markdown]
# ## By what the question looks like
#
# Before searching, only the question is known. Four things are said to favour exact words: identifiers and numbers, quoted
# phrases, rare words, and few words. Here is what these questions say. `against_coin` is the mix against the mean of the two
# sources, that is, against picking one without knowing which is better.

# %%
identifier = re.compile(r"\d|\w_\w|[a-z][A-Z]|\w\.\w|\w\(\)|==|--\w")


def rarest(corpus, text):
    """In how many chunks in a thousand the rarest known word of a question occurs."""
    counts = [count for count in corpus.frequencies(re.findall(r"\w+", text)).values() if count]
    return 1_000 * min(counts, default=0) / corpus.info()["records"]


texts = queries["query"].to_list()
queries = queries.with_columns(
    pl.Series("length", ["up to 6 words" if len(t.split()) <= 6 else "7 words or more" for t in texts]),
    pl.Series("identifier", ["with" if identifier.search(t) else "without" for t in texts]),
    pl.Series("quoted", ["with" if '"' in t else "without" for t in texts]),
    pl.Series("rarest", [rarest(judged[n][0], t) for n, t in queries.select("collection", "query").iter_rows()]),
).with_columns(rare=pl.when(pl.col("rarest") <= 1).then(pl.lit("a rare word")).otherwise(pl.lit("none rare")))
features = ("length", "identifier", "quoted", "rare")
table = pl.concat(
    split(queries, feature, "against_coin")
    .rename({feature: "group"})
    .insert_column(0, pl.lit(feature).alias("feature"))
    for feature in features
)
table

# %%
rows = table.select("feature", "group", "questions", "against_coin", "low", "high").rows()
figure = wb.charts.means_figure([(f"{feature}: {group} ({n})", *ends) for feature, group, n, *ends in rows])
figure.update_xaxes(zeroline=True, zerolinecolor="grey", autorange=True, title_text=f"{measure}: tmm minus the mean of the two sources")

# %% [markdown]
# Where `low` is above zero, mixing is better than picking blindly *for questions of that kind too*. Read the columns `keyword`
# and `vector` before believing that a kind of question belongs to one source: the groups are small, and the collections differ.
#
# ## What to do with it
#
# * Without judgments, mix: on no collection here does it cost more than picking the wrong source.
# * With judgments, check that the better source alone does not beat the mix (`wb.explore`, or the verdicts above); where it does,
#   weigh it more (`fusion.alpha`, `fusion.weights.SOURCE`), and where the interval leaves out zero, use it alone.
# * For the questions that lose, look at one with `corpus.explain`: it names the step that dropped the answer.
# * The same of your own documents: in the first cell, in place of the collections,
#   `judged = {"mine": (wb.open_corpus("my.corpus"), wb.load_judgments("folder-or-file"))}`.

# %% [markdown]
# ## What this notebook claims, checked
#
# The claims hold of the demo corpus and of every collection that was measured.

# %%
for name, ones in evaluations.items():
    mine = queries.filter(collection=name)
    assert mine.height == len(judged[name][1])

    # Mixing never is better on every question, and never worse on every question.
    assert (mine["tmm"] > mine[better[name]]).any() and (mine["tmm"] < mine[better[name]]).any(), name

    # It is better than the worse source alone, by an interval clear of zero.
    assert ones[worse[name]].compare(ones["tmm"], measure).low > 0, name

    # It is better than picking one of the two without knowing which is better, by an interval clear of zero.
    assert interval(mine["against_coin"])[0] > 0, name

    # What is said of the better source is what the interval says.
    d = differences[name]
    assert ("No difference" in d.verdict) == (not d.significant)
    assert ("is better than" in d.verdict) == (d.significant and d.difference > 0)
    assert ("is worse than" in d.verdict) == (d.significant and d.difference < 0)

# Choosing the better source of each question in hindsight is at least as good as either source throughout.
assert queries["better"].mean() >= max(queries["keyword"].mean(), queries["vector"].mean())

# Where only one source finds something, mixing costs; where both do, it costs less.
one, both = (queries.filter(pl.col("found_by") == n)["against_better"] for n in (1, 2))
assert len(one) < 5 or interval(one)[1] < 0  # of fewer the interval says nothing
assert len(one) == 0 or both.mean() > one.mean()

# Every question is in one group of each feature.
assert all(table.filter(feature=f)["questions"].sum() == queries.height for f in features)

for corpus, _ in judged.values():
    corpus.close()
