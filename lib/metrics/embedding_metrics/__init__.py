"""Metrics that compare texts by the vectors of a pretrained encoder.

BERTScore matches the tokens of two texts one by one; embedding similarity compares one vector per
text. Both are real out of the box with the packaged MiniLM encoder; the encoder of a paper is a
parameter, and every score depends on it.
"""

from lib.metrics.embedding_metrics.bertscore import (
    LAYERS,
    Idf,
    bertscore,
    bertscore_baseline,
    bertscore_pairs,
    bertscore_provenance,
    document_frequencies,
)
from lib.metrics.embedding_metrics.similarity import (
    context_similarity,
    reference_similarity,
    sentence_vectors,
    similarity_provenance,
)

__all__ = [
    "LAYERS",
    "Idf",
    "bertscore",
    "bertscore_baseline",
    "bertscore_pairs",
    "bertscore_provenance",
    "context_similarity",
    "document_frequencies",
    "reference_similarity",
    "sentence_vectors",
    "similarity_provenance",
]
