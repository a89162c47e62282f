"""What pages are made of: cards, controls, panels, tables, links."""
