"""Guide: its pages, one at a time; the address names the page and the place in it."""

from __future__ import annotations

import streamlit as st

from workbench import guide
from workbench.ui import resources
from workbench.ui.components import controls, welcome
from workbench.ui.state import page_value, set_page_values

_SCROLL = """
(() => {
  document.querySelector(".st-key-wb-w-guide-page [aria-checked=true]")?.scrollIntoView({block: "nearest", inline: "center"});
  const named = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
  const place = named || document.querySelector(".wb-target");
  if (!place) return;
  if (named) named.classList.add("wb-named");
  place.scrollIntoView({block: named ? "center" : "start"});
})();
"""


def draw() -> None:
    page = page_value("page")
    page = page if page in guide.PAGES else "start"
    st.pills(
        "Page of the guide",
        list(guide.PAGES),
        format_func=lambda name: guide.PAGES[name],
        default=page,
        required=True,
        label_visibility="collapsed",
        **controls.bound("guide.page", page, lambda chosen: set_page_values(page=chosen)),
    )
    corpus = resources.corpus_if_any()
    if page == "start" and corpus is not None and resources.info(corpus)["documents"]:
        with st.container(border=True):
            welcome.tour(corpus)
    st.html(f'<article class="wb-guide">{guide.html(page)}</article>')
    st.html(f"<script>{_SCROLL}</script>", unsafe_allow_javascript=True)
