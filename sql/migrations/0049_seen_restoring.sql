-- Few hours of few processes have a rate: they are found without reading two weeks of all.
create index on metrics.jvm_app_hourly (hour) where restored_records_per_second is not null;
