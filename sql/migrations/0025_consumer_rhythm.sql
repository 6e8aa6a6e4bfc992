-- How a group moves and commits on a partition: facts; what counts as standing still is the detector's.
alter table metrics.consumer_partition_hourly
  add column still_seconds double precision,  -- Seconds since the committed offset last moved, as of the hour's end; at least so many where no move is at hand (15 minutes before the hour and later); null: history couldn't be read
  add column silent_seconds double precision,  -- Seconds since the last commit, as of the hour's end; at least so many where no commit is at hand; null: history couldn't be read
  add column commit_gap_p95_seconds double precision,  -- 95th percentile of the seconds between two commits, over those at hand; null: fewer than two
  add column is_assigned boolean;  -- Whether a member of the group has the partition; null: no assignments are known
