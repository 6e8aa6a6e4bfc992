-- What isn't healthy is found in the newest hour and in a small table, however long the history is.
create index judgement_by_detector on detect.judgement (detector, hour);
create index evaluation_not_ok on detect.evaluation (hour, detector, status) where status <> 'ok';

-- Findings that are in alarm, or were until their newest hour, and since when. Kept up to date by a trigger of evaluation.
create table detect.standing (
  fingerprint text primary key,  -- Finding
  detector text not null,  -- Detector id
  since_hour timestamptz not null,  -- First hour in alarm without a healthy hour since, the newest apart (UTC)
  is_ok boolean not null  -- Whether its newest hour is healthy
);
insert into detect.standing (fingerprint, detector, since_hour, is_ok)
select e.fingerprint, e.detector, min(e.hour), min(e.newest_status) = 'ok'
from (
  select
    v.fingerprint,
    v.detector,
    v.hour,
    v.status,
    n.status as newest_status,
    max(v.hour) filter (where v.status = 'ok' and v.hour < n.hour) over (partition by v.fingerprint) as healthy_hour
  from detect.evaluation as v
  inner join (
    select distinct on (fingerprint) fingerprint, hour, status from detect.evaluation order by fingerprint asc, hour desc
  ) as n on v.fingerprint = n.fingerprint
) as e
where e.status = 'alarm' and (e.healthy_hour is null or e.hour > e.healthy_hour)
group by e.fingerprint, e.detector;

-- Stretches of time in which a volume was the same. Kept up to date by triggers of volume_hourly, and for good.
create table inventory.volume_stretch (
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  volume_id text not null,  -- EBS volume id
  valid_from timestamptz not null,  -- First hour it was seen so (UTC)
  last_hour timestamptz not null,  -- Last hour it was seen so (UTC)
  hours_seen bigint not null,  -- Hours it was seen so; an hour that is loaded long after isn't counted
  volume_type text,  -- gp2, gp3, io1, io2, st1, sc1, standard
  size_gib integer,  -- Size in GiB
  provisioned_iops integer,  -- IOPS as provisioned
  provisioned_throughput_mib_s integer,  -- Throughput as provisioned, MiB/s
  instance_id text,  -- Instance it is attached to; null when detached
  primary key (account, region, volume_id, valid_from)
) with (fillfactor = 70);
insert into inventory.volume_stretch
select
  account,
  region,
  volume_id,
  min(hour),
  max(hour),
  count(*),
  volume_type,
  size_gib,
  provisioned_iops,
  provisioned_throughput_mib_s,
  instance_id
from (
  select
    *,
    row_number() over (partition by account, region, volume_id order by hour)
    - row_number() over (
      partition by
        account, region, volume_id, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id
      order by hour
    ) as stretch
  from inventory.volume_hourly
) as seen
group by
  account, region, volume_id, volume_type, size_gib, provisioned_iops, provisioned_throughput_mib_s, instance_id, stretch;
