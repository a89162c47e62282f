"""Sliders in a Jupyter notebook: the app's engine, settings and charts, in one line of the analyst's own notebook.

`wb.explore(corpus, query)` is all that a notebook needs. What moves (`explorer`), which control a setting has (`controls`),
how a picture is changed in place (`drawing`) and the list of results (`listing`) stand apart, so that each is tested alone.
ipywidgets and anywidget come with the extra `notebooks` and are imported when an explorer is made, not before.
"""
