"""What is kept in the warehouse beside the apps' rows: its schema, named SQL, prices, housekeeping."""
