"""Charts as SVG: they print, and need no script."""
