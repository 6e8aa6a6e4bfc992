"""What everything else stands on: config, errors, hours, the warehouse's address, the apps' catalogue.

`spark_apps` imports this of `streamwarden`, and nothing else.
"""
