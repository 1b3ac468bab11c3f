"""newscaster-tools: model tools for pack makers (needs Python; the engine itself does not)."""
