"""Models: the interface that all share, and the catalogue of named compositions."""

from safecf.models import catalogue
from safecf.models.catalogue import *  # noqa: F403 - a new model is entered in one place, there
from safecf.models.ease import EASE
from safecf.models.model import MODELS
from safecf.models.mult_vae import MultVAE
from safecf.models.recommender import Recommender

__all__ = ["EASE", "MODELS", "MultVAE", "Recommender"]
__all__ += catalogue.__all__
