-- How fast state is restored where it is.
alter table metrics.jvm_app_hourly
  add column restored_records_per_second double precision;  -- How fast records_to_restore fell from the first sample to the last; null: it didn't, or fell to nothing
