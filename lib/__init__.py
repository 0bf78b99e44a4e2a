"""Metrics and statistics for judging open-domain dialogue; the notebooks show how to use them.

The rooms lie along the path of the data, and each imports only rooms above it:

- `data`: the turn table, corpora, personas, a user's file
- `model_files`: fetch models from the hub, make safetensors of other forms, tokenizers
- `models`: find and load pretrained models, run texts through them in batches
- `metrics`: the registry and the kept scores; overlap, embedding, likelihood, classifier metrics
- `psychology`: lexica, emotions, language style, traits
- `endex`: Reddit comments, the engagement data set RED, training and scoring
- `cpdscore`: prompts, the judge and its stored replies, reading of replies
- `analysis`: correlation, resampling, significance, agreement, regression, variance components
- `meta_evaluation`: evaluation sets, and the papers' tables beside ours
- `report`: scores, plots and warnings for dialogs of your own
- `notebook_runs`: runs the notebooks and keeps their tables and figures
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
