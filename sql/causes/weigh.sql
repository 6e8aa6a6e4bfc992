-- Of each finding in alarm in an hour: what may have caused it, and how strongly we think so. A pair of a cause and an
-- effect is weighed when a mechanism knows both and the cause hangs together with the place at which it would act. The
-- strength is the product of five factors between 0 and 1; `mechanisms.yaml` says what the mechanisms ask for.
-- What few values may be is given as an array: a join with many rows of one value would hold each against each.
with recursive mechanism as materialized (
  select *
  from jsonb_to_recordset(cast(:mechanisms as jsonb)) as (
    mechanism text, path text[], parts text, least_share double precision, within_hours double precision,
    amount text, contributes boolean, alone boolean
  )
),

causing as (
  select * from jsonb_to_recordset(cast(:causes as jsonb)) as (mechanism text, detector text, reasons text[])
),

suffering as (
  select * from jsonb_to_recordset(cast(:effects as jsonb)) as (mechanism text, detector text, reasons text[])
),

alarm as materialized (
  select
    *,
    identity ->> 'cluster' as cluster
  from detect.evaluation
  where hour > :hour - interval '6 hours' and hour <= :hour and status = 'firing' and resource is not null
),

-- What was in alarm lately, though it may be over: an effect outlives its cause by some hours.
lately as (
  select distinct on (a.fingerprint, c.mechanism)
    c.mechanism,
    m.path,
    a.fingerprint,
    a.resource,
    a.hour,
    a.affected,
    a.metrics,
    c.reasons
  from alarm as a
  inner join causing as c on a.detector = c.detector and a.reason = any(c.reasons)
  inner join mechanism as m on c.mechanism = m.mechanism
  order by a.fingerprint asc, c.mechanism asc, a.hour desc
),

cause as materialized (
  select
    l.*,
    b.began,
    detect.since_of(l.metrics) as since
  from lately as l
  cross join lateral detect.firing_began(l.fingerprint, l.reasons, l.hour) as b
),

link as materialized (
  select
    upstream,
    downstream,
    split_part(downstream, ':', 1) as kind,
    max(seen_hour) as seen_hour
  from public.resource_links(:hour)
  where basis not in ('leads', 'read by', 'writes')
  group by upstream, downstream
),

walk as (
  select
    mechanism,
    path,
    fingerprint,
    array[resource] as way,
    resource as reached,
    array_position(path, split_part(resource, ':', 1)) as position,
    :hour as seen_hour
  from cause
  union all
  select
    w.mechanism,
    w.path,
    w.fingerprint,
    w.way || l.downstream,
    l.downstream,
    w.position + 1,
    least(w.seen_hour, l.seen_hour)
  from walk as w
  inner join link as l on w.reached = l.upstream and w.path[w.position + 1] = l.kind
),

place as materialized (
  select distinct on (mechanism, fingerprint, reached)
    mechanism,
    fingerprint,
    reached as place,
    way,
    seen_hour
  from walk
  where position = cardinality(path)
  order by mechanism asc, fingerprint asc, reached asc, seen_hour desc
),

effect as materialized (
  select
    s.mechanism,
    m.parts,
    a.fingerprint,
    a.detector,
    a.resource,
    a.cluster,
    a.identity,
    a.affected,
    b.began,
    detect.since_of(a.metrics) as since
  from alarm as a
  inner join suffering as s on a.detector = s.detector and a.reason = any(s.reasons)
  inner join mechanism as m on s.mechanism = m.mechanism
  cross join lateral detect.firing_began(a.fingerprint, s.reasons, a.hour) as b
  where a.hour = :hour and s.mechanism = any(array(select distinct p.mechanism from place as p))
),

-- The partitions that are hit, and all that the group has, with who leads and who owns them.
hit as (
  select distinct
    e.cluster,
    e.identity ->> 'group_id' as group_id,
    p.topic,
    p.partition
  from effect as e
  cross join lateral jsonb_to_recordset(e.affected) as p (topic text, partition integer)
  where e.parts in ('leader', 'member', 'partition') and p.partition is not null
),

host as (
  select
    h.cluster,
    h.host,
    min(public.resource_key('instance', i.account, i.region, i.instance_id)) as member
  from (
    select distinct
      cluster,
      host
    from metrics.consumer_partition_hourly
    where hour = :hour and host is not null
  ) as h
  inner join inventory.instance_hourly as i on i.hour = :hour and ltrim(h.host, '/') in (i.private_ip, i.private_dns)
  group by h.cluster, h.host
),

owned as materialized (
  select
    c.cluster,
    c.group_id,
    c.topic,
    c.partition,
    p.leader,
    o.member,
    h.partition is not null as is_hit
  from metrics.consumer_partition_hourly as c
  left join metrics.partition_hourly as p
    on c.hour = p.hour and c.cluster = p.cluster and c.topic = p.topic and c.partition = p.partition
  left join host as o on c.cluster = o.cluster and c.host = o.host
  left join hit as h
    on c.cluster = h.cluster and c.group_id = h.group_id and c.topic = h.topic and c.partition = h.partition
  where c.hour = :hour and c.cluster = any(
    array(select distinct e.cluster from effect as e where e.parts in ('leader', 'member', 'partition'))
  )
),

-- Counted first, and named then: a name for each of all partitions, or groups and brokers, takes longer than all else.
counted as materialized (
  select
    cluster,
    group_id,
    leader,
    count(*) as parts_there,
    count(*) filter (where is_hit) as explained
  from owned
  group by cluster, group_id, leader
),

leader as materialized (
  select
    cluster,
    leader,
    public.resource_key('broker', cluster, leader::text) as place
  from (
    select distinct
      cluster,
      leader
    from counted
  ) as one
),

spread as materialized (
  select
    parts,
    public.resource_key('group', cluster, group_id) as resource,
    place,
    parts_there,
    explained
  from (
    select
      'leader' as parts,
      c.cluster,
      c.group_id,
      l.place,
      c.parts_there,
      c.explained
    from counted as c
    inner join leader as l on c.cluster = l.cluster and c.leader = l.leader
    union all
    select
      'member',
      cluster,
      group_id,
      member,
      count(*),
      count(*) filter (where is_hit)
    from owned
    where member is not null
    group by cluster, group_id, member
  ) as one
  where place = any(array(select distinct p.place from place as p))
),

whole as materialized (
  select
    public.resource_key('group', cluster, group_id) as resource,
    cluster,
    parts,
    hit
  from (
    select
      cluster,
      group_id,
      count(*) as parts,
      count(*) filter (where is_hit) as hit
    from owned
    group by cluster, group_id
  ) as counted
),

-- Partitions without a replica, and the brokers that had it when they answered last: they lag now, or are silent.
missing as materialized (
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
),

follower as materialized (
  select distinct
    resource,
    cluster,
    identity ->> 'broker_id' as broker_id
  from effect
  where parts = 'follower'
),

holder as (
  select
    r.cluster,
    r.topic,
    r.broker_id,
    r.partition_bytes,
    r.partition_lags,
    r.hour < :hour as is_silent
  from metrics.replica_sample as r
  inner join (
    select
      cluster,
      broker_id,
      max(hour) as hour
    from metrics.replica_sample
    where
      hour > :hour - interval '24 hours' and hour <= :hour
      and (cluster in (select m.cluster from missing as m) or cluster in (select f.cluster from follower as f))
    group by cluster, broker_id
  ) as newest using (cluster, broker_id, hour)
  where not r.is_future
),

lacking as materialized (
  select
    m.resource,
    public.resource_key('broker', m.cluster, h.broker_id::text) as place,
    count(*) as explained
  from missing as m
  inner join holder as h
    on
      m.cluster = h.cluster and m.topic = h.topic and m.leader <> h.broker_id
      and h.partition_bytes ? m.partition::text
      and (h.is_silent or h.partition_lags ? m.partition::text)
  group by m.resource, public.resource_key('broker', m.cluster, h.broker_id::text)
),

lacked as (
  select
    resource,
    count(*) as affected_parts
  from missing
  group by resource
),

-- What a broker follows, by who leads it, and what of that lacks its replica: a leader that can't answer loses followers.
followed as materialized (
  select
    f.resource,
    p.leader,
    count(*) filter (where p.is_missing) as explained,
    count(*) filter (where p.is_held) as parts_there
  from follower as f
  inner join (
    select
      n.cluster,
      n.leader,
      m.broker_id,
      true as is_missing,
      false as is_held
    from metrics.partition_hourly as n
    cross join lateral jsonb_array_elements_text(n.missing_brokers) as m (broker_id)
    where n.hour = :hour and n.cluster = any(array(select o.cluster from follower as o))
    union all
    select
      n.cluster,
      n.leader,
      h.broker_id::text,
      false,
      true
    from holder as h
    cross join lateral jsonb_object_keys(h.partition_bytes) as k (partition)
    inner join metrics.partition_hourly as n
      on n.hour = :hour and h.cluster = n.cluster and h.topic = n.topic and k.partition::integer = n.partition
    where (h.cluster, h.broker_id::text) in (select o.cluster, o.broker_id from follower as o)
  ) as p on f.cluster = p.cluster and f.broker_id = p.broker_id and f.broker_id <> p.leader::text
  group by f.resource, p.leader
),

followed_whole as (
  select
    resource,
    sum(explained)::bigint as affected_parts,
    nullif(sum(parts_there), 0)::bigint as parts
  from followed
  group by resource
),

-- A broker whose replicas nobody read says nothing about who lacks them.
replicas_read as (
  select distinct cluster from holder
),

pair as materialized (
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
    c.metrics as cause_figures,
    p.place,
    p.way,
    p.seen_hour,
    n.explained_parts,
    n.affected_parts,
    n.parts_there,
    n.all_parts
  from effect as e
  inner join place as p on e.mechanism = p.mechanism
  inner join cause as c on p.mechanism = c.mechanism and p.fingerprint = c.fingerprint
  left join spread as s on e.parts = s.parts and e.resource = s.resource and p.place = s.place
  left join whole as w on e.resource = w.resource
  left join lacking as k on e.parts = 'replica' and e.resource = k.resource and p.place = k.place
  left join lacked as l on e.parts = 'replica' and e.resource = l.resource
  left join followed as f
    on e.parts = 'follower' and e.resource = f.resource and p.place = public.resource_key('broker', e.cluster, f.leader::text)
  left join followed_whole as fw on e.parts = 'follower' and e.resource = fw.resource
  left join lateral (
    select
      count(*) filter (where o.is_hit) as hit,
      count(*) as parts
    from jsonb_to_recordset(c.affected) as a (topic text, partition integer)
    inner join owned as o
      on
        e.cluster = o.cluster and e.identity ->> 'group_id' = o.group_id and a.topic = o.topic
        and a.partition = o.partition
    where e.parts = 'partition'
  ) as both_hit on true
  left join lateral (
    select count(*) as hit
    from jsonb_array_elements(e.affected) as theirs (part)
    inner join jsonb_array_elements(c.affected) as its (part) on theirs.part = its.part
    where e.parts = 'led'
  ) as left_behind on true
  cross join lateral (
    values (
      case e.parts
        when 'replica' then coalesce(k.explained, 0)
        when 'follower' then f.explained
        when 'partition' then both_hit.hit
        when 'led' then left_behind.hit
        else s.explained
      end,
      case e.parts
        when 'replica' then l.affected_parts
        when 'follower' then fw.affected_parts
        when 'led' then jsonb_array_length(e.affected)
        else w.hit
      end,
      case e.parts
        when 'follower' then case when fw.parts is not null then f.parts_there end
        when 'partition' then both_hit.parts
        else s.parts_there
      end,
      case when e.parts = 'follower' then fw.parts else w.parts end
    )
  ) as n (explained_parts, affected_parts, parts_there, all_parts)
  where
    e.fingerprint <> c.fingerprint
    and case e.parts
      when 'resource' then e.resource = p.place
      when 'named' then e.resource = p.place and (c.metrics -> 'disturbs')::jsonb ? e.resource
      when 'replica' then
        e.resource <> p.place and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
        and (k.explained > 0 or e.cluster <> all(array(select r.cluster from replicas_read as r)))
      when 'follower' then e.resource <> p.place and f.explained > 0
      when 'partition' then both_hit.hit > 0 and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
      when 'led' then left_behind.hit > 0 and e.cluster = split_part(substring(p.place from '^[a-z]+:(.*)'), '/', 1)
      else s.explained > 0
    end
),

-- Those that one cause would explain for the most part.
explained as materialized (
  select distinct
    mechanism,
    cause,
    detector,
    effect,
    resource
  from pair
  where parts in ('resource', 'named') or explained_parts >= 0.8 * affected_parts
),

-- How others fare that hang on the same place, with a fifth of their parts or with what is hit of them.
exposed as materialized (
  select
    mechanism,
    cause,
    detector,
    resource
  from explained
  union

  select
    p.mechanism,
    p.cause,
    p.detector,
    p.resource
  from (
    select distinct
      mechanism,
      cause,
      detector,
      place,
      parts
    from pair
    where parts in ('leader', 'member')
  ) as q
  cross join lateral (
    select
      q.mechanism,
      q.cause,
      q.detector,
      s.resource
    from spread as s
    inner join whole as w on s.resource = w.resource
    where s.parts = q.parts and s.place = q.place and s.parts_there >= 0.2 * w.parts
  ) as p
  union
  select
    q.mechanism,
    q.cause,
    q.detector,
    r.place
  from (
    select distinct
      mechanism,
      cause,
      detector
    from pair
    where parts = 'resource'
  ) as q
  inner join place as r on q.mechanism = r.mechanism and q.cause = r.fingerprint
),

judged as materialized (
  select
    detector,
    resource,
    fingerprint,
    identity ->> 'cluster' as cluster,
    status = 'firing' as is_sick
  from detect.evaluation
  where hour = :hour and status in ('firing', 'ok') and detector = any(array(select distinct p.detector from pair as p))
),

on_it as (
  select
    x.mechanism,
    x.cause,
    x.detector,
    count(*) filter (where j.is_sick) as sick,
    count(*) filter (where not j.is_sick) as well
  from exposed as x
  inner join judged as j on x.detector = j.detector and x.resource = j.resource
  group by x.mechanism, x.cause, x.detector
),

off_it as (
  select
    q.mechanism,
    q.cause,
    q.detector,
    count(distinct j.resource) filter (where j.is_sick and x.resource is null and o.effect is null) as sick,
    count(distinct j.resource) filter (where not j.is_sick and x.resource is null) as well
  from (
    select distinct
      mechanism,
      cause,
      detector,
      cluster
    from pair
    where cluster is not null
  ) as q
  inner join judged as j on q.detector = j.detector and q.cluster = j.cluster
  left join exposed as x
    on q.mechanism = x.mechanism and q.cause = x.cause and q.detector = x.detector and j.resource = x.resource
  -- What another cause explains, or this one in another way, says nothing against it.
  left join explained as o on j.fingerprint = o.effect and (q.cause, q.mechanism) <> (o.cause, o.mechanism)
  group by q.mechanism, q.cause, q.detector
),

-- How often partitions are late at a place, and where no cause is known to act.
late_at as (
  select
    s.parts,
    s.place,
    w.cluster,
    sum(s.explained) as late,
    sum(s.parts_there) as partitions
  from spread as s
  inner join whole as w on s.resource = w.resource
  group by s.parts, s.place, w.cluster
),

late_elsewhere as (
  select
    l.parts,
    w.cluster,
    (w.late - sum(l.late))::double precision as late,
    w.partitions - sum(l.partitions) as partitions
  from late_at as l
  inner join (
    select
      cluster,
      sum(hit) as late,
      sum(parts) as partitions
    from whole
    group by cluster
  ) as w on l.cluster = w.cluster
  group by l.parts, w.cluster, w.late, w.partitions
),

-- What all places together explain of an effect: two brokers that are sick at once share what lacks replicas.
joint as (
  select
    effect,
    mechanism,
    sum(explained_parts) as explained_parts,
    max(explained_parts) as most
  from (
    select distinct
      effect,
      mechanism,
      place,
      explained_parts
    from pair
    where parts not in ('resource', 'named')
  ) as one
  group by effect, mechanism
),

factor as (
  select
    p.*,
    j.explained_parts::double precision / nullif(p.affected_parts, 0) as joint_share,
    p.explained_parts = j.most as is_most,
    late_at.late / nullif(late_at.partitions, 0)::double precision as late_there,
    late_elsewhere.late / nullif(late_elsewhere.partitions, 0) as late_elsewhere,
    p.explained_parts::double precision / nullif(p.affected_parts, 0) as explained_share,
    public.coincidence_probability(p.explained_parts, p.affected_parts, p.parts_there, p.all_parts) as coincidence,
    p.parts_there::double precision / nullif(p.all_parts, 0) as chance,
    on_it.sick as sick_there,
    on_it.well as well_there,
    off_it.sick as sick_elsewhere,
    off_it.well as well_elsewhere,
    m.least_share,
    m.contributes,
    m.alone,
    m.within_hours,
    case when p.seen_hour < :hour then 0.9 else 1.0 end as place_factor,
    case
      when p.cause_since > p.effect_since + interval '10 minutes' then 0.0
      when p.cause_began > p.effect_began + interval '1 hour' then 0.0
      when p.cause_hour < p.effect_began - make_interval(secs => m.within_hours * 3600) then 0.0
      else 1.0
    end as time_factor,
    reads.share * coalesce((p.cause_figures ->> 'unaccounted_of_excess_percent')::double precision / 100, 0) as amount
  from pair as p
  inner join mechanism as m on p.mechanism = m.mechanism
  left join on_it on p.mechanism = on_it.mechanism and p.cause = on_it.cause and p.detector = on_it.detector
  left join joint as j on p.mechanism = j.mechanism and p.effect = j.effect
  left join late_at on p.parts = late_at.parts and p.place = late_at.place
  left join late_elsewhere on p.parts = late_elsewhere.parts and p.cluster = late_elsewhere.cluster
  left join off_it on p.mechanism = off_it.mechanism and p.cause = off_it.cause and p.detector = off_it.detector
  left join lateral (
    select coalesce(sum(v.read_bytes) / nullif(sum(v.read_bytes + v.write_bytes), 0), 0) as share
    from metrics.volume_sample as v
    where
      m.amount = 'reads' and v.at >= :hour and v.at < :hour + interval '1 hour'
      and v.account = p.identity ->> 'account'
      and v.region = p.identity ->> 'region' and v.volume_id = p.identity ->> 'volume_id'
  ) as reads on m.amount = 'reads'
),

weighed as (
  select
    *,
    case
      when parts in ('resource', 'named') then 1.0
      when explained_share is null then 0.5
      when explained_share < least_share and joint_share >= least_share and is_most then 0.6
      -- Most of it lies there, which is no chance, or nearly all others that hang on it are late as well.
      when
        explained_share < least_share and explained_share > 0.5
        and (coincidence < 0.02 or (coincidence < 0.1 and sick_there >= 3 and sick_there > 5 * well_there))
        then 0.6 + explained_share / 6
      when explained_share < least_share then 0.7 * explained_share
      when parts in ('replica', 'partition', 'led') then explained_share
      -- Whoever leads all that it follows leads what it lacks, whose fault that is.
      when parts = 'follower' and chance = 1 then 0.55
      -- All of its parts are there: the share says nothing, and the siblings must.
      when chance = 1 and sick_there >= 3 and well_there = 0 then 0.9
      when chance = 1 then 0.7
      -- So few are late that they could lie there by chance, unless others that hang on it are late as well.
      when coincidence > 0.1 and not (sick_there >= 2 and sick_there > well_there) then 0.55
      else explained_share
    end as share_factor,
    case
      when parts in ('replica', 'follower', 'partition', 'led') or contributes or alone or amount is not null then 1.0
      when parts in ('leader', 'member') then
        1 / (1 + coalesce(well_there, 0) / 3.0 / greatest(sick_there, 1))
        -- What can't be chance in itself isn't doubted for what else is late.
        * case when coincidence < 0.02 then 1 else greatest(0, 1 - coalesce(late_elsewhere, 0) / late_there) end
      else
        1 / (1 + coalesce(well_there, 0) / 3.0 / greatest(sick_there, 1))
        * greatest(
          0,
          1 - coalesce(sick_elsewhere, 0) / (coalesce(sick_elsewhere, 0) + coalesce(well_elsewhere, 0) + 2.0)
          / (greatest(sick_there, 1) / (greatest(sick_there, 1) + coalesce(well_there, 0)::double precision))
        )
    end as siblings_factor,
    least(1, 2 * amount) as amount_factor
  from factor
),

strength as (
  select
    *,
    least(
      place_factor * time_factor * share_factor * siblings_factor * coalesce(amount_factor, 1),
      case when contributes then 0.59 else 1 end
    ) as strength,
    array_position(
      array['cluster', 'volume', 'instance', 'broker', 'store', 'application', 'process', 'topic', 'group'],
      split_part(cause_resource, ':', 1)
    ) as layer
  from weighed
),

-- One mechanism a pair, and the five likeliest causes of an effect.
likeliest as (
  select
    *,
    -- What is strong enough first; of those a place that explains by its parts just what is hit says more than one that
    -- the whole thing hangs on, and of two the one of which less is well.
    row_number() over (
      partition by effect
      order by
        is_strong desc, parts in ('leader', 'member') and (chance = 1 or explained_share < least_share) asc,
        strength desc, parts = 'resource' asc, coincidence asc, layer asc, cause_began asc, cause asc
    ) as place_in_line
  from (
    select distinct on (effect, cause)
      *,
      strength >= 0.6 as is_strong
    from strength
    order by effect asc, cause asc, strength desc, mechanism asc
  ) as one
),

chosen as (
  select
    effect,
    cause,
    effect_began
  from likeliest
  where place_in_line = 1 and is_strong
),

-- A circle is cut at what began first.
chain as (
  select
    effect as beginning,
    effect_began,
    cause as reached,
    array[effect] as passed
  from chosen
  union all
  select
    c.beginning,
    c.effect_began,
    n.cause,
    c.passed || n.effect
  from chain as c
  inner join chosen as n on c.reached = n.effect
  where c.reached <> all(c.passed) and cardinality(c.passed) < 20
),

circle as (
  select distinct on (members)
    beginning
  from (
    select
      c.beginning,
      c.effect_began,
      (select array_agg(one order by one) from unnest(c.passed) as one) as members
    from chain as c
    where c.reached = c.beginning
  ) as round_trip
  order by members asc, effect_began asc, beginning asc
)

select
  l.effect,
  l.cause,
  l.mechanism,
  l.strength,
  l.place_in_line = 1 and l.is_strong and l.effect not in (select c.beginning from circle as c) as is_accepted,
  l.place_factor,
  l.time_factor,
  l.share_factor,
  l.siblings_factor,
  l.amount_factor,
  l.place,
  l.way,
  l.seen_hour,
  l.cause_began,
  l.effect_began,
  l.explained_parts,
  l.affected_parts,
  l.parts_there,
  l.all_parts as parts,
  l.sick_there,
  l.well_there,
  l.sick_elsewhere,
  l.well_elsewhere,
  l.amount
from likeliest as l
where l.place_in_line <= 5
order by l.effect asc, l.place_in_line asc
