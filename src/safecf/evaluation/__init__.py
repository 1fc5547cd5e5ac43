"""Evaluation: scores per user first, their tails and means after."""
