"""Metrics and statistics for judging open-domain dialogue; the notebooks show how to use them."""
