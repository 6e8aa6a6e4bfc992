-- The broker with the highest network use if a peer failed, in its fuller direction, and the number of brokers with known
-- network use; no row: none is known.
select
  h.cluster,
  h.broker_id,
  d.direction,
  d.ratio,
  d.one_lost_ratio,
  count(d.one_lost_ratio) filter (where d.direction = 'in') over () as known,
  count(*) filter (where d.direction = 'in') over () as brokers
from public.cluster_headroom as h
cross join lateral (
  values ('in', h.network_in_ratio, h.network_in_one_lost_ratio), ('out', h.network_out_ratio, h.network_out_one_lost_ratio)
) as d (direction, ratio, one_lost_ratio)
order by d.one_lost_ratio desc nulls last, h.cluster asc, h.broker_id asc, d.direction asc
limit 1
