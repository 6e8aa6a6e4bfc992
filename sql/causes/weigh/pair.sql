-- Which firing finding can explain which: one row for each mechanism, effect, cause, and place. Counts the parts of the
-- effect that the place explains (`explained_parts` of `affected_parts`), and those it has at all (`parts_there` of
-- `all_parts`).
select
  e.mechanism,
  e.parts,
  e.fingerprint as effect,
  e.detector,
  e.resource,
  e.cluster,
  e.identity,
  e.began as effect_began,
  e.since as effect_since,
  c.fingerprint as cause,
  c.resource as cause_resource,
  c.began as cause_began,
  c.since as cause_since,
  c.hour as cause_hour,
  c.metrics as cause_metrics,
  p.place,
  p.path,
  p.seen_hour,
  coalesce(both_affected.is_confirmed, false) as is_confirmed,
  n.explained_parts,
  n.affected_parts,
  n.parts_there,
  n.all_parts
from effect as e
inner join place as p on e.mechanism = p.mechanism
inner join cause as c on p.mechanism = c.mechanism and p.cause = c.fingerprint
left join group_place as g on e.parts = g.parts and e.resource = g.resource and p.place = g.place
left join group_total as t on e.resource = t.resource
left join replica_place as r on e.parts = 'replica' and e.resource = r.resource and p.place = r.place
left join (
  select
    resource,
    count(*) as partitions
  from missing_replica
  group by resource
) as m on e.parts = 'replica' and e.resource = m.resource
left join follower_place as f on e.parts = 'follower' and e.resource = f.resource and p.place = f.place
left join lateral (
  select
    -- A group waits for a transaction only where it has read everything before it.
    count(*) filter (where o.is_late and (e.at_stable_offset and o.is_before_stable) is not true) as late,
    e.at_stable_offset and bool_and(o.is_before_stable is false) filter (where o.is_late) as is_confirmed,
    count(*) as partitions
  from jsonb_to_recordset(c.affected) as a (topic text, partition integer)
  inner join group_partition as o
    on
      e.cluster = o.cluster and e.identity ->> 'group_id' = o.group_id and a.topic = o.topic
      and a.partition = o.partition
  where e.parts = 'partition'
) as both_affected on true
left join lateral (
  select count(*) as partitions
  from jsonb_array_elements(e.affected) as theirs (part)
  inner join jsonb_array_elements(c.affected) as its (part) on theirs.part = its.part
  where e.parts = 'led'
) as last_led on true
cross join lateral (
  values (
    case e.parts
      when 'replica' then coalesce(r.explained_parts, 0)
      when 'follower' then f.explained_parts
      when 'partition' then both_affected.late
      when 'led' then last_led.partitions
      else g.late
    end,
    case e.parts
      when 'replica' then m.partitions
      when 'follower' then f.affected_parts
      when 'led' then jsonb_array_length(e.affected)
      else t.late
    end,
    case e.parts
      when 'follower' then f.parts_there
      when 'partition' then both_affected.partitions
      else g.partitions
    end,
    case when e.parts = 'follower' then f.all_parts else t.partitions end
  )
) as n (explained_parts, affected_parts, parts_there, all_parts)
where
  e.fingerprint <> c.fingerprint
  and case e.parts
    when 'resource' then e.resource = p.place
    when 'named' then e.resource = p.place and (c.metrics -> 'slowed_brokers')::jsonb ? e.resource
    when 'replica' then
      e.resource <> p.place and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
      -- Without lists of replicas, any broker of the cluster may hold the missing ones.
      and (r.explained_parts > 0 or e.cluster <> all(array(select distinct l.cluster from replica as l)))
    when 'follower' then e.resource <> p.place and f.explained_parts > 0
    when 'partition' then
      both_affected.late > 0 and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
    when 'led' then
      last_led.partitions > 0 and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
    else g.late > 0
  end
