"""Guide: its pages, one at a time; the address names the page and the place in it."""

from __future__ import annotations

import streamlit as st

from workbench import guide
from workbench.ui import layout
from workbench.ui.state import address_value


def draw() -> None:
    asked = address_value("page")
    asked = asked if asked in guide.PAGES else "start"
    # A new key for each page, so that a link or the browser's back button is not overruled by what was chosen before.
    page = st.pills(
        "Page of the guide",
        list(guide.PAGES),
        format_func=lambda name: guide.PAGES[name],
        default=asked,
        required=True,
        key=f"guide-{asked}",
        label_visibility="collapsed",
    )
    if page and page != asked:
        st.query_params["page"] = page
        st.rerun()
    st.html(f'<article class="wb-guide">{guide.html(asked)}</article>')
    st.html(layout.scroll_script(), unsafe_allow_javascript=True)
