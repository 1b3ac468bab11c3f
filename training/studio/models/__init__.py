"""The networks of the pack. Their graphs' tensors are listed in docs/pack-format.md."""
