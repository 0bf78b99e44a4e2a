"""Agreeableness and empathic concern from language.

The paper's two models were never released and no public model of either trait was found. This
package trains stand-ins in the open (`fit_trait_model`) and loads models that you may have.
"""

from lib.psychology.traits.essays import read_wassa, sample_essays
from lib.psychology.traits.model import PUBLISHED_R, TraitModel, fit_trait_model, load_trait_model
from lib.psychology.traits.scoring import score_traits

__all__ = [
    "PUBLISHED_R",
    "TraitModel",
    "fit_trait_model",
    "load_trait_model",
    "read_wassa",
    "sample_essays",
    "score_traits",
]
