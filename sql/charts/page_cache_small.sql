/*
title: Bytes read from the brokers' disks, and bytes sent
unit: bytes/s
kind: lines
why: "Last 7 days. Reads that follow the bytes sent mean too little memory; a single peak is a replay or a restore."
*/
select
  r.hour as at,
  line.series,
  line.bytes / 3600 as value
from public.broker_reads_hourly(:hour, 7) as r
cross join lateral (values ('read from disks', r.read_bytes), ('sent', r.sent_bytes)) as line (series, bytes)
where r.cluster = :cluster and line.bytes is not null
order by at, series
