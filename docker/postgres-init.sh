#!/bin/sh
# Run once by the postgres image, on an empty data folder: two databases, each with its own owner.
set -eu
psql --username "$POSTGRES_USER" --dbname postgres --set ON_ERROR_STOP=1 \
  --set warehouse_password="$WAREHOUSE_PASSWORD" --set airflow_password="$AIRFLOW_DB_PASSWORD" <<'SQL'
create role streamwarden login password :'warehouse_password';
create database streamwarden owner streamwarden;
create role airflow login password :'airflow_password';
create database airflow owner airflow;
-- The orphans of a killed scheduler keep its advisory lock, and the next scheduler would queue nothing.
alter database airflow set idle_in_transaction_session_timeout = '10min';
revoke connect on database streamwarden, airflow from public;
SQL
