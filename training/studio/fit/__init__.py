"""Training: every network's data, losses and loop. `python -m studio train --help` lists them."""
