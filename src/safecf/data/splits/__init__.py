"""Splits: what is trained on, what is shown of held-out users, and what is to be predicted."""
