"""The tables of the three papers, recomputed and set beside the printed numbers."""
