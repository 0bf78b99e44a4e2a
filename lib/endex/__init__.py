"""EnDex: engagingness of a reply, learned from how people react on Reddit (Xu et al. 2022)."""

from lib.endex.baselines import length, question, random, specificity
from lib.endex.evaluation import SETS, evaluation_sets, partial_correlation
from lib.endex.options import Options
from lib.endex.pairs import KINDS, corrupt, one_dimension, split, with_negatives
from lib.endex.scoring import score, system_turns
from lib.endex.train import Run, fine_tune

__all__ = [
    "KINDS",
    "SETS",
    "Options",
    "Run",
    "corrupt",
    "evaluation_sets",
    "fine_tune",
    "length",
    "one_dimension",
    "partial_correlation",
    "question",
    "random",
    "score",
    "specificity",
    "split",
    "system_turns",
    "with_negatives",
]
