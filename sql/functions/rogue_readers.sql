-- The resources that findings about untracked reads of a cluster name. Two readers have two tickets, and one that reads
-- several topics has one. A topic belongs, in this order, to:
-- 1. the finding that named it in the two hours before: its ticket is still open, and a reader that is identified later
--    does not get a second one;
-- 2. the only group with members on the topic and without commits;
-- 3. the only client that may be the reader;
-- 4. together with all topics that are left, the one with most unaccounted bytes: readers that are not known and begin in
--    the same hour cannot be distinguished. One that begins later has a finding of its own.
-- Readers of the days before that have stopped are returned too, and the cluster itself where no topics are given.
create or replace function public.rogue_readers(
  of_cluster text, of_hour timestamptz,
  topics json,                                 -- topic, unaccounted_bytes_per_second, members_without_commits; null: none
  top_client text, suspects bigint, reader_days integer
) returns table (
  group_id text,
  client_id text,
  topic text,                                  -- all three are null: the cluster itself
  is_reading boolean,
  unaccounted_bytes_per_second double precision,
  unaccounted_topics json,
  affected jsonb,
  suspect text                                 -- the client that may be the reader
) language sql stable rows 2 as $$
  with earlier as materialized (
    select distinct on (f.identity) f.hour, f.identity, f.affected
    from detect.firing_hours('consumer_rogue', of_hour, reader_days) as f
    where f.identity ->> 'cluster' = of_cluster and f.identity <> jsonb_build_object('cluster', of_cluster)
    order by f.identity, f.hour desc
  ),

  read as materialized (
    select
      t.value as topic,
      t.place,
      coalesce(
        (
          select e.identity from earlier as e
          where e.hour >= of_hour - interval '2 hours'
          and e.affected ? public.resource_key('topic', of_cluster, t.value ->> 'topic')
          order by e.hour desc, e.identity asc
          limit 1
        ),
        (
          select jsonb_build_object('cluster', of_cluster, 'group_id', min(m.value ->> 'group_id'))
          from json_array_elements(t.value -> 'members_without_commits') as m (value)
          having min(m.value ->> 'group_id') = max(m.value ->> 'group_id')
        ),
        case when suspects = 1 then jsonb_build_object('cluster', of_cluster, 'client_id', top_client) end
      ) as identity
    from json_array_elements(topics) with ordinality as t (value, place)
  ),

  named as materialized (
    select
      topic,
      place,
      coalesce(
        identity,
        jsonb_build_object(
          'cluster', of_cluster, 'topic', first_value(topic ->> 'topic') over (partition by identity order by place)
        )
      ) as identity
    from read
  ),

  reader as materialized (
    select
      identity,
      sum((topic ->> 'unaccounted_bytes_per_second')::double precision) as bytes_per_second,
      json_agg(topic order by place) as topics,
      jsonb_agg(public.resource_key('topic', of_cluster, topic ->> 'topic') order by topic ->> 'topic') as affected
    from named
    group by identity
  )

  select
    r.identity ->> 'group_id',
    r.identity ->> 'client_id',
    r.identity ->> 'topic',
    true,
    r.bytes_per_second,
    r.topics,
    r.affected,
    case
      when r.identity ? 'client_id' then r.identity ->> 'client_id'
      when not exists (select 1 from reader as o where o.identity ->> 'client_id' = top_client) then top_client
    end
  from reader as r
  union all
  select e.identity ->> 'group_id', e.identity ->> 'client_id', e.identity ->> 'topic', false, null, null, null, null
  from earlier as e
  where e.identity not in (select r.identity from reader as r)
  union all
  select null, null, null, false, null, null, null, top_client
  where topics is null
$$;
comment on function public.rogue_readers is
'The groups, clients, or topics that findings about untracked reads of a cluster name, with the topics that each reads.';
