"""Synthetic presenters from MakeHuman data (CC0): identities, hair, clothes and their pictures."""
