"""Metrics against people: evaluation sets, the overview, and the papers' tables beside ours."""
