"""The pages in the Airflow UI: made on the server, behind Airflow's own login; who may edit DAGs answers there."""
