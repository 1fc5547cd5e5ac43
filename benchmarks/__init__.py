"""Benchmarks: speed and memory, measured beside a peer or the machine's own limit."""
