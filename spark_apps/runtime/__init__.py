"""How apps run: the Spark session, a fast JVM start, and reading and writing the warehouse."""
