-- Retention drops hours by partitions. What 0032 made is days old, and any hour can be weighed again.
drop table detect.weighing;

-- Hours of which causes were weighed.
create table detect.weighing (
  hour timestamptz primary key,  -- Start of the hour (UTC)
  pairs integer not null,  -- Causes and effects that were held against each other and kept
  accepted integer not null,  -- Effects that follow from a cause
  seconds double precision not null,  -- Time it took
  weighed_at timestamptz not null  -- When (UTC)
) partition by range (hour);
