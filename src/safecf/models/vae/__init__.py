"""Mult-VAE: its encoder in numpy, all that a trained model needs, and its training in torch."""
