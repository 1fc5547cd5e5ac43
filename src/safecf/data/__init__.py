"""Interactions: checking, both directions, splits and data sets."""
