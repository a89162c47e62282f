"""The keyword search as one SQL statement over the tables of a generation: what the mapped arrays compute, for people to read.

Built here, run elsewhere. The statement holds no parameters, so that it can be copied and run as it is; texts are
quoted, and contain only what the query's words became.
"""

from __future__ import annotations

from collections.abc import Sequence

from workbench.store.lexical import tokens
from workbench.store.lexical.query import Item, Matcher, ParsedQuery, Step, needed

_SHIFT, _MASK = tokens.SPAN_BITS, (1 << tokens.SPAN_BITS) - 1


def statement(query: ParsedQuery, *, k1: float, b: float, every: bool, depth: int) -> str:
    """A statement that gives `number`, `score` of the best `depth` records, score down, then number up.

    Args:
        query: The query as read.
        k1, b: BM25's parameters.
        every: Whether every item of an alternative must occur.
        depth: How many rows.
    """
    scored = query.scored
    if not scored:
        return f"SELECT number, 0.0::DOUBLE AS score FROM lengths WHERE false LIMIT {depth}"
    names: dict[Matcher, str] = {}
    required = tuple(needed(items) for items in query.required) if every else ()
    wanted = [item.matcher for items in (*required, query.excluded) for item in items]
    for matcher in (*(m for m, _ in scored), *wanted):
        names.setdefault(matcher, f"m{len(names)}")
    ctes = [f"{name} AS (\n  -- {_comment(matcher)}\n  {_occurrences(matcher)}\n)" for matcher, name in names.items()]
    summands = "\n  UNION ALL ".join(
        f"SELECT {i} AS item, {weight!r}::DOUBLE AS weight, number, tf FROM {names[matcher]}"
        for i, (matcher, weight) in enumerate(scored)
    )
    ctes += [
        f"found AS (\n  {summands}\n)",
        "frequency AS (SELECT item, count(*) AS df FROM found GROUP BY item)",
        "corpus AS (SELECT count(*) AS n, sum(length) / count(*) AS mean_length FROM lengths)",
    ]
    conditions = _conditions(required, query.excluded, names)
    where = f"\nWHERE {conditions}" if conditions else ""
    k1_text, b_text = repr(float(k1)), repr(float(b))
    return (
        "WITH " + ",\n".join(ctes) + "\nSELECT found.number, sum(\n"
        "    weight * ln(1.0 + (n - df + 0.5) / (df + 0.5))\n"
        f"    * tf * ({k1_text}::DOUBLE + 1.0) / (tf + {k1_text}::DOUBLE * (1.0 - {b_text}::DOUBLE"
        f" + {b_text}::DOUBLE * length / mean_length))\n"
        "    ORDER BY item) AS score\n"
        "FROM found JOIN frequency USING (item) JOIN lengths USING (number) CROSS JOIN corpus"
        f"{where}\nGROUP BY found.number\nORDER BY score DESC, found.number\nLIMIT {depth}"
    )


def _conditions(required: Sequence[Sequence[Item]], excluded: Sequence[Item], names: dict[Matcher, str]) -> str:
    alternatives = [
        " AND ".join(f"found.number IN (SELECT number FROM {names[item.matcher]})" for item in items)
        for items in required
    ]
    parts = ["(" + "\n  OR ".join(f"({a})" for a in alternatives) + ")"] if alternatives else []
    parts += [f"found.number NOT IN (SELECT number FROM {names[item.matcher]})" for item in excluded]
    return "\n  AND ".join(parts)


def _occurrences(matcher: Matcher) -> str:
    """SELECT number, tf of every record that a matcher occurs in."""
    if matcher.term is not None:
        return f"SELECT number, tf FROM postings WHERE term_number = {_number(matcher.term)}"
    if not matcher.steps:
        begins = f"starts_with(word, {_quoted(matcher.prefix)})"
        return (
            f"SELECT number, sum(tf) AS tf FROM (\n    SELECT number, tf FROM word_postings WHERE word_number IN"
            f" (SELECT word_number FROM words WHERE {begins})\n    UNION ALL SELECT number, tf FROM postings WHERE"
            f" term_number IN (SELECT term_number FROM words WHERE alone AND {begins})\n  ) GROUP BY number"
        )
    ends = ""
    for step in matcher.steps:
        ends = _step(step, ends)
    return f"SELECT number, count(*) AS tf FROM ({ends}) GROUP BY number"


def _step(step: Step, before: str) -> str:
    """SELECT DISTINCT number, place: where the next word would start, after this step."""
    paths = []
    for path in step:
        ends = before
        for term in path:
            source = f"SELECT number, unnest(positions) AS p FROM postings WHERE term_number = {_number(term)}"
            after = f"(p >> {_SHIFT}) + (p & {_MASK}) + 1 AS place"
            if ends:
                ends = (
                    f"SELECT DISTINCT o.number, (o.p >> {_SHIFT}) + (o.p & {_MASK}) + 1 AS place FROM ({ends}) e"
                    f"\n    JOIN ({source}) o ON o.number = e.number AND o.p >> {_SHIFT} = e.place"
                )
            else:
                ends = f"SELECT DISTINCT number, {after} FROM ({source})"
        paths.append(ends)
    return paths[0] if len(paths) == 1 else "\n    UNION ".join(f"({p})" for p in paths)


def _number(term: str) -> str:
    return f"(SELECT term_number FROM terms WHERE term = {_quoted(term)})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _comment(matcher: Matcher) -> str:
    """What a matcher is, on one line."""
    text = (
        matcher.prefix + "*"
        if not matcher.steps
        else " ".join(
            "(" + " | ".join(" ".join(path) for path in step) + ")" if len(step) > 1 else " ".join(step[0])
            for step in matcher.steps
        )
    )
    return "".join(c if c.isprintable() else " " for c in text)
