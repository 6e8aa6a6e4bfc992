-- Where each cause acts: the resources at the end of its mechanism's path, reached over the topology of the hour.
-- `seen_hour` is the hour of the oldest link on the path; of several paths to a place, the most recent counts. Between a
-- broker on Kubernetes and the volume that its pod claims, there is no instance.
with recursive link as materialized (
  select
    upstream,
    downstream,
    split_part(downstream, ':', 1) as kind,
    bool_or(basis in ('claimed by', 'claims')) as is_claim,
    max(seen_hour) as seen_hour
  from public.resource_links(:hour)
  where basis not in ('leads', 'read by', 'writes', 'carries')
  group by upstream, downstream
),

walk as (
  select
    mechanism,
    kinds,
    fingerprint,
    array[start.resource] as path,
    start.resource as reached,
    array_position(kinds, split_part(start.resource, ':', 1)) as position,
    :hour as seen_hour
  from cause
  -- A finding about a part of a cluster, such as a topic that is read, acts through the cluster where the path begins there.
  cross join lateral (
    select
      case
        when kinds[1] = 'cluster' and array_position(kinds, split_part(cause.resource, ':', 1)) is null
          then public.resource_key('cluster', cause.cluster)
        else cause.resource
      end as resource
  ) as start
  union all
  select
    w.mechanism,
    w.kinds,
    w.fingerprint,
    w.path || l.downstream,
    l.downstream,
    array_position(w.kinds, l.kind),
    least(w.seen_hour, l.seen_hour)
  from walk as w
  inner join link as l on w.reached = l.upstream
    and (w.kinds[w.position + 1] = l.kind or (l.is_claim and array_position(w.kinds, l.kind) > w.position))
)

select distinct on (mechanism, fingerprint, reached)
  mechanism,
  fingerprint as cause,
  reached as place,
  path,
  seen_hour
from walk
where position = cardinality(kinds)
order by mechanism asc, fingerprint asc, reached asc, seen_hour desc
