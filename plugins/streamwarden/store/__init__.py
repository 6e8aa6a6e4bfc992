"""What is kept in the warehouse in addition to the apps' rows: its schema, named SQL, prices, housekeeping."""
