-- What a verdict on memory needs to be sure: bounds where RocksDB's caches can't be told, and what grows with more stores.
alter table metrics.jvm_app_hourly
  add column heap_survived_bytes double precision,  -- What the last collection of each heap pool left; of the old generation that may be long ago
  add column application_stores integer,  -- Stores × tasks of its application over all processes, standbys not counted twice
  add column rocksdb_expected_max_bytes double precision,  -- As rocksdb_expected_bytes, with caches that can't be told (too empty) taken for own ones
  add column rocksdb_shared_bytes double precision;  -- Of these, caches that stores share: they don't grow with more stores
