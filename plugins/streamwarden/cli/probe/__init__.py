"""`streamwarden config check --probe`: sends every source of the config the requests that an hourly run sends.

Each failed request is printed with the action that fixes it.
"""
