"""Guide: the columns, the query, the filter, the presets and every setting, on one page."""

import streamlit as st

from workbench.ui import reference, style

st.html(reference.html())
st.html(style.scroll_script(), unsafe_allow_javascript=True)
