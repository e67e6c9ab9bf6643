"""Parts of bench/run and bench/compare.py. Only the standard library: peers live in their own environment."""
