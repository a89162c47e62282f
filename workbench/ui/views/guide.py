"""Guide: its pages, one at a time; the address names the page and the place in it."""

import streamlit as st

from workbench import guide
from workbench.ui import style
from workbench.ui.state import address_value

CSS = """
.wb-guide{max-width:62rem;line-height:1.5}
.wb-guide table{border-collapse:collapse;font-size:.86rem;display:block;overflow-x:auto;margin:.6rem 0}
.wb-guide th,.wb-guide td{border-bottom:1px solid color-mix(in srgb,currentColor 18%,transparent);padding:.3rem .6rem .3rem 0;
 text-align:left;vertical-align:top}
.wb-guide pre{overflow-x:auto;padding:.6rem;border-radius:.4rem;background:color-mix(in srgb,currentColor 6%,transparent)}
.wb-guide code{font-size:.86em}
.wb-guide :is(h1,h2,h3,h4,tr){scroll-margin-top:5rem}
"""

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
st.html(f'<style>{CSS}</style><article class="wb-guide">{guide.html(asked)}</article>')
st.html(style.scroll_script(), unsafe_allow_javascript=True)
