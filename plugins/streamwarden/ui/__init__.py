"""The pages in the Airflow UI: rendered on the server, behind Airflow's login; users who may edit DAGs can respond."""
