-- Partitions with fewer in-sync replicas than replicas, led by the brokers whose findings are weighed.
select
  public.resource_key('broker', p.cluster, p.leader::text) as resource,
  p.cluster,
  p.topic,
  p.partition,
  p.leader
from metrics.partition_hourly as p
where
  p.hour = :hour and p.isr < p.replicas
  and (p.cluster, p.leader::text) in (
    select
      e.cluster,
      e.identity ->> 'broker_id'
    from effect as e
    where e.parts = 'replica'
  )
