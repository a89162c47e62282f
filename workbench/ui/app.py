"""The app's router: what `workbench app` runs, and what tests start from."""

from workbench.ui import house

house.run()
