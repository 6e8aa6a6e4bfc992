-- A load that is newer than the hour, and how long it has been there.
alter table metrics.volume_hourly
  add column minutes_draining integer;  -- Of the last 15 minutes, those that took more than the bucket earns; null: it has none
