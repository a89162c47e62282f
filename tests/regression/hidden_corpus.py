"""A corpus of several tenants, roles and sensitivities, and for each principal the one that was built without the rest.

Every group of documents has words, a phrase and a front matter key of its own, and shares other words with all groups; some
documents of different groups have the same text, the same path (under two roots) or stand in the same file. Two of each group
are there twice, and the same bytes in several groups.
"""

import json
import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import workbench as wb
from workbench.records import Principal
from workbench.store.access.redaction import MaskPatterns

POLICY = MaskPatterns(hidden=("restricted",), cleared=("admin",))
SHARED = [f"{a}{b}" for a in ("bel", "cor", "dam", "fen", "gor", "hal") for b in ("ando", "eric", "ilux", "omet")]
SAME = "belando cormet the very same text stands in several groups fenilux\n"


@dataclass(frozen=True)
class Group:
    """Documents that the same principals see: `root/name/...`, by rule of the corpus."""

    name: str
    root: str
    rule: str
    seen_by: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        """Words that no other group has; some begin as shared ones do, so that prefixes meet."""
        return [f"{start}{self.name}{n}" for start in ("bel", "cor", "own") for n in range(6)]

    @property
    def phrase(self) -> str:
        """Shared words in an order that only this group has them in."""
        return " ".join(random.Random(self.name).sample(SHARED, 3))


PRINCIPALS = {"support": Principal("acme", ("support",)), "admin": Principal("acme", ("admin",)), "nobody": Principal()}
GROUPS = (
    Group("open", "main", "tenant: acme", ("support", "admin")),
    Group("admin", "main", "tenant: acme\n    roles: [admin]", ("admin",)),
    Group("support", "main", "tenant: acme\n    roles: [support]", ("support",)),
    Group("vault", "main", "tenant: acme\n    sensitivity: restricted\n    collection: [vault]", ("admin",)),
    Group("commons", "main", "tenant: null", ("nobody",)),
    Group("birch", "other", "tenant: birch\n    roles: [staff]", ()),
)
MIXED = (("plain", "", ("support", "admin")), ("admins", "admin", ("admin",)), ("helpers", "support", ("support",)))


def visible_to(who: str) -> tuple[Group, ...]:
    """The groups that a principal sees."""
    return tuple(g for g in GROUPS if who in g.seen_by)


def hidden_from(who: str) -> tuple[Group, ...]:
    """The others."""
    return tuple(g for g in GROUPS if who not in g.seen_by)


def build(folder: Path) -> dict[str, Path]:
    """Corpus folders: `all`, and one a principal without what it may not see. The files stand at the same paths."""
    made = {}
    for who in ("all", *PRINCIPALS):
        shutil.rmtree(folder / "files", ignore_errors=True)
        _write(folder / "files", who)
        made[who] = folder / f"corpus-{who}"
        made[who].mkdir()
        rules = "".join(f'  - path: "{g.name}/**"\n    {g.rule}\n' for g in GROUPS)
        rules += (
            '  - path: "mixed/**"\n    tenant: acme\n  - path: "*/art*"\n    collection: [artifacts, artifact_chunks]\n'
        )
        (made[who] / "corpus.yaml").write_text(f"collections:\n  artifacts: document\nrules:\n{rules}")
        roots = [folder / "files" / name for name in ("main", "other")]
        wb.index(roots, corpus=made[who], encoder="hashing")
    return made


def _write(files: Path, who: str) -> None:
    for root in ("main", "other"):
        (files / root).mkdir(parents=True)
    for group in GROUPS:
        if who == "all" or who in group.seen_by:
            for name, text in _documents(group).items():
                _put(files / group.root / group.name / name, text)
    lines = []
    for name, role, seen_by in MIXED:
        if who == "all" or who in seen_by:
            record = {"id": name, "title": f"Record {name}", "text": f"{' '.join(SHARED[:9])} mixed{name} record"}
            lines.append(json.dumps(record | ({"roles": [role], f"key_{name}": 1} if role else {})))
    if lines:
        _put(files / "main" / "mixed" / "records.jsonl", "\n".join(lines) + "\n")


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))


def _documents(group: Group) -> dict[str, str]:
    """The group's files. Made from its name alone, so that they are the same whoever else is there."""
    rng = random.Random(f"documents {group.name}")

    def paragraph(length: int) -> str:
        words = rng.choices(SHARED, k=length) + rng.choices(group.words, k=length // 3)
        rng.shuffle(words)
        lines = [" ".join(words[i : i + 9]) for i in range(0, len(words), 9)]
        return "\n".join([*lines, f"said {group.phrase} again", ""])

    files = {"same.md": SAME, "code.py": f"def {group.name}_total(bel):\n    return bel  # {rng.choice(SHARED)}\n"}
    for number in range(7):
        front = f"---\nteam: {rng.choice(['red', 'blue', group.name])}\nyear: {2020 + number}\nkey_{group.name}: {number}\n---\n"
        body = f"# {group.name.title()} {number}\n\n{paragraph(30)}\n## Details\n\n{paragraph(160)}\n## Examples\n\n"
        code = f"Show {rng.choice(SHARED)}\n\n```\n{group.name}_run({number})\n```\n"
        files[f"{'art' if number > 4 else 'page'}{number}.md"] = front + body + code
    # The same bytes again, once before and once after the first in the order of paths.
    files["art6 copy.md"], files["again/page3.md"] = files["art6.md"], files["page3.md"]
    return files
