-- Partitions that a broker follows, by their leader: those without its replica in sync, and all where replicas were listed.
select
  resource,
  public.resource_key('broker', cluster, leader::text) as place,
  explained_parts,
  sum(explained_parts) over of_follower::bigint as affected_parts,
  case when sum(parts_there) over of_follower > 0 then parts_there end as parts_there,
  nullif(sum(parts_there) over of_follower, 0)::bigint as all_parts
from (
  select
    f.resource,
    f.cluster,
    p.leader,
    count(*) filter (where p.is_missing) as explained_parts,
    count(*) filter (where not p.is_missing) as parts_there
  from follower as f
  inner join (
    select
      n.cluster,
      n.leader,
      m.broker_id,
      true as is_missing
    from metrics.partition_hourly as n
    cross join lateral jsonb_array_elements_text(n.missing_brokers) as m (broker_id)
    where n.hour = :hour and n.cluster = any(array(select o.cluster from follower as o))
    union all
    select
      n.cluster,
      n.leader,
      r.broker_id::text,
      false
    from replica as r
    cross join lateral jsonb_object_keys(r.partition_bytes) as k (partition)
    inner join metrics.partition_hourly as n
      on n.hour = :hour and r.cluster = n.cluster and r.topic = n.topic and k.partition::integer = n.partition
    where (r.cluster, r.broker_id::text) in (select o.cluster, o.broker_id from follower as o)
  ) as p on f.cluster = p.cluster and f.broker_id = p.broker_id and f.broker_id <> p.leader::text
  group by f.resource, f.cluster, p.leader
) as counted
window of_follower as (partition by resource)
