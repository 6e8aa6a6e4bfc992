-- Brokers that run on these volumes and instances, as of an hour.
with link as materialized (
  select
    upstream,
    downstream
  from public.resource_links(:hour)
)

select
  upstream as resource,
  downstream as broker
from link
where upstream = any(cast(:resources as text[])) and downstream like 'broker:%'
union
select
  v.upstream,
  b.downstream
from link as v
inner join link as b on v.downstream = b.upstream
where v.upstream = any(cast(:resources as text[])) and v.downstream like 'instance:%' and b.downstream like 'broker:%'
order by resource, broker
