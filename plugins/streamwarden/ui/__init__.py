"""The pages in the Airflow UI: made on the server, read-only, behind Airflow's own login."""
