-- Brokers that are missing from the in-sync replicas of partitions led by others.
select distinct
  resource,
  cluster,
  identity ->> 'broker_id' as broker_id
from effect
where parts = 'follower'
