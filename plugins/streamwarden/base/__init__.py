"""The lowest layer: config, errors, hours, the connection to the warehouse, the catalog of Spark apps.

`spark_apps` imports only this layer of `streamwarden`.
"""
