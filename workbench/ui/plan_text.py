"""A plan as text to take away, and what differs from its preset."""

from __future__ import annotations

import streamlit as st

from workbench.plan import fields as plan_fields
from workbench.plan.plan import Plan, preset
from workbench.ui.text import attribute, visible


def differences(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    """Field, the preset's value and the plan's, of each field that differs, in the table's order."""
    base = preset(plan.preset)
    return tuple((n, plan_fields.show(base[n]), plan_fields.show(value)) for n, value in plan.changes().items())


def html(plan: Plan) -> str:
    """The plan's text form with a copy button, and a table of what differs from its preset."""
    text = str(plan)
    rows = "".join(
        f"<tr><td><code>{visible(name)}</code></td><td>{visible(was)}</td><td><b>{visible(now)}</b></td></tr>"
        for name, was, now in differences(plan)
    )
    table = (
        f'<table class="wb-table"><tr><th>Setting</th><th>{visible(plan.preset)}</th><th>Now</th></tr>{rows}</table>'
    )
    return (
        '<div class="wb-plan"><div class="wb-planline">'
        f'<code class="wb-plantext">{visible(text)}</code>'
        f'<button type="button" class="wb-copy" data-wb-copy="{attribute(text)}" aria-label="Copy the plan">Copy</button>'
        f"</div>{table if rows else '<p class=wb-msg>Nothing differs from the preset.</p>'}</div>"
    )


def files(plan: Plan) -> None:
    """The plan as YAML, to copy or to save as a file."""
    st.code(plan.to_yaml(), language="yaml", wrap_lines=True)
    st.download_button(
        "Save as a file", plan.to_yaml(), f"{plan.preset}.yaml", "application/yaml", key="wb.w.plan.file",
        on_click="ignore", help="A plan file, for `workbench search QUERY --plan-file plan.yaml` and notebooks.",
    )  # fmt: skip
