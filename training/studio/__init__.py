"""The recipe of the default pack `studio`: synthetic voices and faces, networks, training, export.

Everything comes from PyPI and Debian packages; no recording or picture of a real person is used.
docs/training.md walks through the steps.
"""
