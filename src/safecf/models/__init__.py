"""Models: the shared interface, and the catalogue of named compositions."""

from safecf.models.catalogue import ERMMF, IALS, MODELS, SAFER2, SAFER2CG
from safecf.models.recommender import Recommender

__all__ = ["ERMMF", "IALS", "MODELS", "SAFER2", "SAFER2CG", "Recommender"]
