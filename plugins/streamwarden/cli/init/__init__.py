"""`streamwarden init`: discovers a fleet and writes its config, with what was not found and what is missing for it."""
