"""Metrics and statistics for judging open-domain dialogue; the notebooks show how to use them.

The package reads along the path of the data:

- load: `dialogues`, `corpora`, `personas`, `reddit`
- score: `overlap_metrics`, `embedding_metrics`, `likelihood_metrics`, `classifier_metrics`,
  `psychological_metrics` (with `lexicons` and `traits`), `endex` (with `engagement`), `cpdscore`
  (with `prompts`, `judge` and `reply_store`); `scores` runs them by name and keeps the results,
  `checkpoints` and `batching` serve those that need a model
- relate: `correlation`, `agreement`, `regression`, `hierarchy`
- show: `figures`, `notebook_runs`, `report`
"""
