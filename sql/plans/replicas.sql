-- Topics of a cluster that need more replicas, or replicas elsewhere, as last evaluated: the largest topics of each weakness,
-- their number in the finding and in total, and the replication factor that they need. One row without a topic if the cluster
-- was evaluated and nothing is wrong.
with newest as (
  select distinct on (detector)
    detector,
    hour,
    cast(params ->> 'replicas' as integer) as wanted
  from detect.detector_run
  where detector in ('topic_replication_weak', 'topic_on_parked_broker') and status = 'evaluated'
  order by detector asc, hour desc
),

evaluated as (
  select
    n.wanted,
    e.status,
    e.metrics,
    case e.detector
      when 'topic_on_parked_broker' then e.metrics -> 'worst_topics'
      else e.metrics -> 'weak_topics'
    end as topics
  from newest as n
  inner join detect.evaluation as e using (detector, hour)
  where e.identity ->> 'cluster' = :cluster
),

one as (
  select
    t.wanted,
    w.value ->> 'topic' as topic,
    kind.weakness,
    cast(w.value ->> 'replicas' as integer) as replicas,
    w.ordinality as place,
    count(*) over (partition by kind.weakness) as shown_topics,
    cast(case kind.weakness
      when 'one replica' then t.metrics ->> 'single_topics'
      when 'high min.insync.replicas' then t.metrics ->> 'high_min_isr_topics'
      when 'low min.insync.replicas' then t.metrics ->> 'low_min_isr_topics'
      when 'one rack' then t.metrics ->> 'one_rack_topics'
      else t.metrics ->> 'misplaced_topics'
    end as integer) as topics
  from evaluated as t
  cross join lateral json_array_elements(
    case when t.status = 'firing' and json_typeof(t.topics) = 'array' then t.topics else '[]' end
  ) with ordinality as w
  cross join lateral (select coalesce(w.value ->> 'weakness', 'on a parked broker') as weakness) as kind
)

select
  one.topic,
  one.weakness,
  one.wanted,
  one.shown_topics,
  one.topics
from (select count(*) as times from evaluated) as found
-- With more than two replicas, min.insync.replicas is changed instead.
left join one on one.weakness not in ('high min.insync.replicas', 'low min.insync.replicas') or one.replicas <= 2
where found.times > 0
order by
  array_position(
    array['one replica', 'high min.insync.replicas', 'low min.insync.replicas', 'on a parked broker', 'one rack'],
    one.weakness
  ) asc,
  one.place asc
