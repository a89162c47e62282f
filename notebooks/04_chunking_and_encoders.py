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
# # Chunkings and encoders compared
#
# Two choices come before any slider: how long a chunk is, and which model makes its vector. Both change what is stored, so
# they are compared by corpora: the same files, chunked or embedded differently, with the same judged questions.
#
# That is fair only if the judgments do not know the chunks. Here they do not: a judgment is of a *passage*, a run of
# characters of a document. A chunk inherits the judgment of a passage that it holds, and each passage counts once, at the
# rank of the first chunk that has it.
#
# It embeds 78 files twice, by two encoders, and takes under a minute on two cores.

# %% tags=["parameters"]
folder = "demo-chunking"  # where the files and the corpora go
encoders = ["all-MiniLM-L6-v2", "hashing"]  # the first is the source `vector`, each other one is `vector:NAME`
sizes = [200, 60]  # most tokens of a chunk; the first is the baseline
measure = "nDCG@10"

# %%
import csv
import os
import re
import time
from pathlib import Path

import polars as pl

import workbench as wb

_ = pl.Config(tbl_rows=20, tbl_cols=12, fmt_str_lengths=90)

# %% [markdown]
# ## The same files, twice
#
# The files are the language topics of Python's own documentation. The size of a chunk is the setting `chunk_tokens`; each
# corpus gets the vectors of both encoders. `hashing` makes vectors of hashed words and parts of words: it needs no
# model, and it embeds many times faster.

# %%
files = wb.demo_files(Path(folder) / "files") / "docs"
corpora, reports = {}, {}
for size in sizes:
    os.environ["WORKBENCH_CHUNK_TOKENS"] = str(size)
    reports[size] = wb.index(
        [files], corpus=Path(folder) / f"chunks-{size}", encoder=encoders, progress=wb.progress_line()
    )
    corpora[size] = wb.open_corpus(Path(folder) / f"chunks-{size}")
del os.environ["WORKBENCH_CHUNK_TOKENS"]
pl.DataFrame(
    [(size, r.documents, r.chunks, round(r.embedding_seconds, 1), ", ".join(r.encoders)) for size, r in reports.items()],
    schema=["chunk_tokens", "documents", "chunks", "embedding s", "encoders"],
    orient="row",
)

# %% [markdown]
# ## Judgments of passages
#
# For each question, a document and words of the paragraph that answers it. The paragraph's place in the document makes the
# judgment; the file is one that `workbench judge import` reads too.

# %%
answers = [
    ("a name was used before it got a value", "topics/naming.txt", "UnboundLocalError"),
    ("use a variable of the enclosing function and change it", "topics/nonlocal.txt", "listed identifiers to refer"),
    ("run something when the loop was not left early", "topics/for.txt", "in the .else. clause"),
    ("keep the first error when raising another", "topics/raise.txt", "__cause__"),
    ("clean up whatever happens", "topics/try.txt", "specifies a .cleanup. handler"),
    ("which values count as false", "topics/truth.txt", "considered true"),
    ("whole number division rounds down", "topics/binary.txt", ".floor. function"),
    ("commas between thousands when a number is printed", "topics/formatstrings.txt", "thousands separator"),
    ("take spaces off both ends of a text", "topics/string-methods.txt", "leading and trailing characters"),
    ("save memory by leaving out the dictionary of instances", "topics/attribute-access.txt", "__slots__"),
    ("what happens when an attribute is not found", "topics/attribute-access.txt", "default attribute access fails"),
    ("equal objects must have equal hashes", "topics/customization.txt", "compare equal have the same hash"),
    ("when are default values of parameters computed", "topics/function.txt", "Default parameter values"),
    ("an extra condition on a case", "topics/compound.txt", "guard. succeeds|guard"),
    ("the same object, not only an equal one", "topics/comparisons.txt", "identity"),
    ("several comparisons in a row without and", "topics/comparisons.txt", "chained arbitrarily"),
    ("do nothing at all where a statement is needed", "topics/pass.txt", "null operation"),
    ("leave the innermost loop", "topics/break.txt", "nearest enclosing loop"),
    ("go on with the next turn of the loop", "topics/continue.txt", "next cycle"),
    ("stop the program if a condition does not hold", "topics/assert.txt", "debugging assertions"),
    ("remove a binding of a name", "topics/del.txt", "removes the binding"),
    ("a function without a name", "topics/lambda.txt", "anonymous functions"),
    ("set up and tear down around a block", "topics/with.txt", "context manager"),
    ("names that a module gives away with a star", "topics/import.txt", "public names"),
    ("numbers with underscores between digits", "topics/integers.txt", "[Uu]nderscores"),
    ("the part of a sequence between two positions", "topics/slicings.txt", "selects a range"),
    ("two keys of a mapping are the same", "topics/dict.txt", "duplicate|last value"),
    ("a value that means that there is none", "topics/types.txt", "absence of a value"),
    ("imaginary part of a number", "topics/imaginary.txt", "real part of 0"),
    ("a backslash at the end of a raw text", "topics/strings.txt", "raw"),
]

corpus = corpora[sizes[0]]
judged = []
for number, (question, path, words) in enumerate(answers, 1):
    text = corpus.read_file(path)
    found = re.search(words, text)
    if found is None:  # the documentation of another Python says it otherwise
        continue
    start = text.rfind("\n\n", 0, found.start()) + 2 if "\n\n" in text[: found.start()] else 0
    end = text.find("\n\n", found.end())
    end = len(text) if end < 0 else end
    judged.append((f"q{number:02}", question, path, start, end, text[start:end], 1))
with (Path(folder) / "passages.csv").open("w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([("query_id", "query", "document", "start", "end", "quote", "grade"), *judged])

judgments = corpus.judgments(corpus.import_judgments(Path(folder) / "passages.csv"))
lengths = [end - start for _, _, _, start, end, _, _ in judged]
print(f"{len(judgments)} questions, passages of {min(lengths)} to {max(lengths)} characters")

# %% [markdown]
# ## Which chunk size?
#
# The same plan in both corpora, by each source alone and by both. A long chunk's vector is an average of more things, a short
# chunk may lack the words of the question: the questions decide which weighs more.

# %%
def measured(size, sources, mode="hybrid"):
    plan = f"default vector.threshold=off sources={sources}"
    return corpora[size].evaluate(judgments, plan, [measure, "R@10", "RR"], mode=mode).named(f"{sources}, {size} tokens")


modes = ("keyword", "vector", "hybrid")
by_size = {
    (mode, size): measured(size, "keyword,vector", mode).named(f"{mode}, {size} tokens")
    for mode in modes
    for size in sizes
}
size_verdicts = {mode: by_size[mode, sizes[0]].compare(by_size[mode, sizes[1]]) for mode in modes}
for mode, difference in size_verdicts.items():
    print(difference.verdict)


# %%
def means(evaluations):
    rows = []
    for evaluation in evaluations:
        row = evaluation.frame().row(0, named=True)
        rows.append((evaluation.name, row["mean"], row["low"], row["high"]))
    return rows


figure = wb.charts.means_figure(means(by_size.values()))
figure.update_xaxes(title_text=f"{measure}, and its 95 % interval")

# %% [markdown]
# The questions behind the difference: above the line the small chunks are better.

# %%
first, second = (by_size["vector", size] for size in sizes[:2])
wb.charts.wins_figure(first.wins(second), measure, (first.name, second.name))

# %% [markdown]
# ## Which encoder?
#
# One corpus, three plans: each encoder alone, then both fused (mode `vector` fuses all vector sources of the plan), then the
# same three beside the keyword source.

# %%
own, other = "vector", f"vector:{encoders[1]}"
size = sizes[0]
alone = {s: measured(size, s, "vector") for s in (own, other, f"{own},{other}")}
hybrid = {s: measured(size, f"keyword,{s}") for s in (own, other, f"{own},{other}")}
encoder_verdicts = [alone[own].compare(alone[s]) for s in (other, f"{own},{other}")]
encoder_verdicts += [hybrid[own].compare(hybrid[s]) for s in (other, f"{own},{other}")]
for difference in encoder_verdicts:
    print(difference.verdict)

# %%
figure = wb.charts.means_figure(means([*alone.values(), *hybrid.values()]))
figure.update_xaxes(title_text=f"{measure}, and its 95 % interval")

# %% [markdown]
# How much should the second encoder weigh? A sweep tries weights; the weight 0 is the plan without it. The verdict is on
# questions that did not choose the weight.

# %%
sweep = corpora[size].sweep(
    judgments,
    {f"fusion.weights.{other}": [0, 0.1, 0.25, 0.5, 1]},
    measure=measure,
    plan=f"default vector.threshold=off sources=keyword,{own},{other}",
    baseline=f"default vector.threshold=off sources=keyword,{own}",
)
print(sweep.verdict)
sweep.frame().select("rank", "changes", "mean", "low", "high", "wins", "losses", "p_holm")

# %% [markdown]
# And what it costs: a question that was not asked before, by each encoder, the middle of 20 searches.

# %%
def milliseconds(source):
    times = []
    for n in range(20):
        begin = time.perf_counter()
        question = f"{answers[n % len(answers)][0]} {n}"
        corpora[size].search(question, mode="vector", plan=f"default sources={source}", bypass_cache=True)
        times.append((time.perf_counter() - begin) * 1000)
    return sorted(times)[10]


pl.DataFrame(
    [(encoder, round(milliseconds(source), 1)) for encoder, source in zip(encoders, (own, other))],
    schema=["encoder", "ms a search"],
    orient="row",
)

# %% [markdown]
# ## Now with your own files
#
# * Put your folder in place of `files`, and questions, documents and words of the answers into `answers`; twenty or more, from
#   people who did not write the documents. The Judge page of `workbench app` grades passages too.
# * `WORKBENCH_CHUNK_TOKENS=200 workbench index FOLDER --encoder all-MiniLM-L6-v2 --encoder hashing` is the same on the command line.
# * No difference shown? Then take what costs less: longer chunks are fewer, and `hashing` needs no model at search time.

# %% [markdown]
# ## What this notebook claims, checked

# %%
assert len(judgments) >= 20
small, large = min(sizes), max(sizes)
assert reports[small].chunks > reports[large].chunks
assert all(report.encoders == tuple(encoders) for report in reports.values())

# the judgments do not know the chunks: every passage can be found in both corpora
for size_ in sizes:
    everything = "default sources=keyword,vector vector.threshold=off depth.vector=100000 depth.keyword=100000"
    deep = corpora[size_].evaluate(judgments, everything, "R@100000", mode="vector")
    assert deep.mean("R@100000") == 1.0

for difference in [*size_verdicts.values(), *encoder_verdicts]:
    assert difference.low <= difference.difference <= difference.high
    assert difference.wins + difference.losses + difference.ties == len(judgments)

# two encoders are two sources, and a weight of 0 is the plan without the second
result = corpora[size].search(answers[0][0], mode="vector", plan=f"default vector.threshold=off sources={own},{other}")
assert set(result.rankings) == {own, other}
weightless = corpora[size].evaluate(
    judgments, f"default vector.threshold=off sources=keyword,{own},{other} fusion.weights.{other}=0", measure
)
assert abs(weightless.mean(measure) - hybrid[own].mean(measure)) < 1e-12

for open_one in corpora.values():
    open_one.close()
