"""How values become words: figures with their units, templates."""
