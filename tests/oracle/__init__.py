"""Oracles: independent answers that hearth is judged by.

host       linear layers and norms in float32 (or float64) for mlx-lm's model classes
gguf_f32   float32 oracle for a real GGUF file
tiny       tiny random checkpoints of every architecture, with float32 and bf16 oracles
measure    KL, agreement, margins and the error bounds that tests compare with
corpus     natural text
gguf_ids   text to ids for a GGUF file
program    runs the hearth binary
"""
