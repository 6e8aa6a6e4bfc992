"""`streamwarden config check --probe`: asks every source of the config once, as the hour's apps do.

What is refused is told with the line that mends it.
"""
