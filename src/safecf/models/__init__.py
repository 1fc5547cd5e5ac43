"""Models: the interface that all share, and the catalogue of named compositions."""

from safecf.models.catalogue import ERMMF, IALS, IALSPP, MODELS, SAFER2, SAFER2CG, SAFER2PP, CVaRMF
from safecf.models.ease import EASE
from safecf.models.mult_vae import MultVAE
from safecf.models.recommender import Recommender

__all__ = [
    "EASE",
    "ERMMF",
    "IALS",
    "IALSPP",
    "MODELS",
    "SAFER2",
    "SAFER2CG",
    "SAFER2PP",
    "CVaRMF",
    "MultVAE",
    "Recommender",
]
