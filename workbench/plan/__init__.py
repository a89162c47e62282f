"""The plan: every setting of one search, its fields, presets, controls, and which fields do nothing."""
