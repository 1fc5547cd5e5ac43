"""Mult-VAE: the encoder in NumPy, which trained models use, and training in torch."""
