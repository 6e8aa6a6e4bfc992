/*
title: Values of a state store changed their schema
severity: critical
owner: streaming
maturity: stable
reads: [metrics.state_store_hourly, metrics.state_store_change_hourly]
identity: [cluster, topic]
params:
  min_values: {default: 20, unit: values, why: "fewer of the old or of the new kind may be a slip, or chance; of registered schemas one is enough"}
  min_profiled: {default: 50, unit: values, why: "with fewer values a field can't be called required; a registered schema says it"}
  strict_readers: {default: 0, unit: "0 or 1", why: "1 where readers refuse unknown fields, or fractions in an integer field; most JSON readers don't"}
rule: |
  A store's values lie in its changelog. From the values that are still in the log it is learnt for each JSON path how
  often it is there, and with which types; values that look alike make a version, and the newest version is compared with
  every older one. Values framed by a Schema Registry are compared by their registered schemas.

  Critical: new code can't restore the old state. A type changed or got narrower, a field that isn't in old values is
  always there now, null isn't seen any more. Warning: old code can't read the new state, so that a rollback or a rolling
  deploy breaks: a field that was always there went away, a type got wider, null came. A field that is only added, or
  whose going hurts strict readers only, is information unless strict_readers says so.

  A few values may be a slip or chance: min_values of the old and of the new kind must be there, and min_profiled looked
  at before a field is called required. While the log holds both kinds of values, the finding stands.
clear_after_hours: 2
runbook: |
  1. Read which path changed, from which offset on, and compare the two examples (or the two registered schemas) with
     what the application's current and previous release expect.
  2. Critical: the release that writes the new values can't restore the old ones. Before any restart or rebalance, give
     it a reader that accepts both (a default for a missing field, a union for a changed type), or rewrite the old values:
     read them, upgrade them, and put them back through the application.
  3. If the state may be rebuilt: stop the application, run kafka-streams-application-reset with its application id,
     delete the local state and start the new release.
  4. Warning: don't roll back to, and don't keep running side by side, a release that can't read the new values.
  5. The ticket closes once the log holds no old values any more: compaction took them, or they were rewritten.
blind_spots: |
  The rules know values, not code: a reader with defaults or a lenient parser may live with what is called breaking.
  Strings in JSON are strings: a new constant of an enumeration is judged only where a schema is registered. Inside
  arrays a value counts, not each element, and nulls aren't seen. Values framed by a Schema Registry are judged by their registered schemas, not
  by what they hold; a schema id that no registry knows can't be judged. A long counter and a frame of 8 bytes look alike
  where the id isn't known. In a large log the values are a sample; a version of fewer than 0.1 % of them may be missed.
  In a compacted log old records are final states: a field that only young records lack looks like one that was removed,
  if it is gone at a stroke. Who asks the store through the application (interactive queries) isn't seen.
*/
with changes as (
  select
    c.*,
    case
      when c.strict_only and :strict_readers = 0 then 'info'
      when c.old_schema_id is null and least(c.old_count, c.new_count) < :min_values then 'info'
      when c.breaks_backward then 'critical'
      when c.breaks_forward then 'warning'
      else 'info'
    end as weight
  from metrics.state_store_change_hourly as c
  where c.hour = cast(:hour as timestamptz)
),

described as (
  select
    *,
    row_number() over (
      partition by cluster, topic
      order by array_position(array['critical', 'warning', 'info'], weight), old_version, path
    ) as rank,
    case
      when change = 'field_made_required' then format('%s (%s) must always be there now', path, new_type)
      when old_type is null then format('%s (%s) was added', path, new_type)
      when change = 'field_made_optional' then format('%s (%s) is no longer always there', path, old_type)
      when new_type is null then format('%s (%s) was removed', path, old_type)
      when change = 'nullability_gained' then format('%s (%s) became null in some values', path, old_type)
      when change = 'nullability_lost' then format('%s (%s) is never null any more', path, new_type)
      when change = 'type_widened' then format('%s became %s beside %s', path, new_type, old_type)
      when change = 'type_narrowed' then format('%s is no longer %s, only %s', path, old_type, new_type)
      else format('%s turned from %s to %s', path, old_type, new_type)
    end as what
  from changes
),

told as (
  select
    *,
    concat_ws(
      '; ',
      format(
        '%s; %s',
        what,
        case
          when weight = 'info' and strict_only then 'breaks strict readers at most'
          when weight = 'info' then 'breaks nothing'
          when breaks_backward and breaks_forward then 'breaks restore and rollback'
          when breaks_backward then 'breaks the restore'
          else 'breaks the rollback'
        end
      ),
      format('%s old values', old_count)
      || coalesce(' of schema ' || old_schema_id, '')
      || coalesce(', the last at ' || old_last_offset, '')
      || coalesce(' of ' || left((old_last_at at time zone 'UTC')::text, 16) || ' UTC', '')
      || coalesce(', they look like ' || old_example, ''),
      format('%s new ones', new_count)
      || coalesce(' of schema ' || new_schema_id, '')
      || coalesce(', the first at ' || new_first_offset, '')
      || coalesce(' of ' || left((new_first_at at time zone 'UTC')::text, 16) || ' UTC', '')
      || coalesce(', they look like ' || new_example, '')
    ) as sentence
  from described
),

by_store as (
  select
    cluster,
    topic,
    min(weight) filter (where rank = 1) as worst,
    count(*) filter (where weight <> 'info') as breaking,
    count(*) filter (where weight = 'info') as harmless,
    string_agg(what, ', ' order by rank) filter (where weight <> 'info' and rank <= 3) as what_broke,
    sum(old_count) filter (where rank = 1) as old_values,
    sum(new_count) filter (where rank = 1) as new_values,
    min(new_first_at) filter (where weight <> 'info') as changed_at,
    min(old_last_offset) filter (where rank = 1) as old_last_offset,
    min(new_first_offset) filter (where rank = 1) as new_first_offset,
    min(path) filter (where rank = 1) as path,
    min(old_type) filter (where rank = 1) as old_type,
    min(new_type) filter (where rank = 1) as new_type,
    case
      when bool_or(breaks_backward and weight <> 'info') and bool_or(breaks_forward and weight <> 'info')
        then 'restore and rollback'
      when bool_or(breaks_backward and weight <> 'info') then 'restore'
      when bool_or(breaks_forward and weight <> 'info') then 'rollback'
    end as breaks,
    max(old_last_at) filter (where rank = 1) as old_last_at,
    jsonb_agg(sentence order by rank) filter (where rank <= 20) as changes
  from told
  group by cluster, topic
),

-- Who reads it is told, not judged: it comes from the newest hour known, and to know nothing of groups blocks nothing.
groups_known as (
  select
    cluster,
    max(hour) as hour
  from inventory.consumer_group_hourly
  where hour > cast(:hour as timestamptz) - interval '24 hours' and hour <= cast(:hour as timestamptz)
  group by cluster
),

readers as (
  select
    s.cluster,
    s.topic,
    jsonb_agg(
      jsonb_build_object('group', g.group_id, 'state', lower(g.state), 'members', g.members)
      order by g.group_id = s.application_id desc, g.group_id asc
    ) as read_by
  from metrics.state_store_hourly as s
  inner join groups_known as k on s.cluster = k.cluster
  inner join inventory.consumer_group_hourly as g on k.cluster = g.cluster and k.hour = g.hour
  where
    s.hour = cast(:hour as timestamptz)
    and (
      g.group_id = s.application_id
      or exists (
        select 1
        from metrics.consumer_partition_hourly as p
        where p.hour = g.hour and p.cluster = g.cluster and p.group_id = g.group_id and p.topic = s.topic
      )
    )
  group by s.cluster, s.topic
),

judged as (
  select
    s.*,
    coalesce(r.read_by, jsonb_build_array(jsonb_build_object('group', s.application_id))) as read_by,
    b.breaking,
    b.harmless,
    b.what_broke,
    b.old_values,
    b.new_values,
    b.changed_at,
    b.old_last_offset,
    b.new_first_offset,
    b.path,
    b.old_type,
    b.new_type,
    b.breaks,
    b.old_last_at,
    b.changes,
    (
      select
        jsonb_agg(
          format(
            '%s: %s values, the first at %s, the last at %s',
            coalesce(framing.told ->> 'registered_as', format('schema %s, not known', framing.told ->> 'schema_id')),
            framing.told ->> 'values', framing.told ->> 'first_offset', framing.told ->> 'last_offset'
          ) order by framing.place
        )
      from jsonb_array_elements(s.schemas) with ordinality as framing (told, place)
    ) as registered_schemas,
    coalesce(b.worst, 'info') as worst,
    case
      when s.records is null then 'it couldn''t be read; see the hour''s coverage'
      when s.values_profiled = 0 then 'its log holds no values'
      when coalesce(b.worst, 'info') <> 'info' then null
      when s.uncompared is not null then s.uncompared
      when s.format = 'framed' and s.schemas is null then 'its values are framed by a Schema Registry'
      when s.values_profiled < :min_profiled and s.format <> 'framed'
        then format('%s values are too few to judge', s.values_profiled)
      when s.format in ('string', 'binary') then format('its values are %s, not JSON', s.format)
      when s.unreadable_values * 2 > s.values_profiled
        then format('%s of %s values aren''t %s', s.unreadable_values, s.values_profiled, s.format)
    end as why_not
  from metrics.state_store_hourly as s
  left join by_store as b on s.cluster = b.cluster and s.topic = b.topic
  left join readers as r on s.cluster = r.cluster and s.topic = r.topic
  where s.hour = cast(:hour as timestamptz)
)

select
  cluster,
  topic,
  application_id,
  store,
  format as value_format,
  windowed,
  versions,
  values_profiled,
  values_total,
  unreadable_values,
  path,
  old_type,
  new_type,
  coalesce(breaks, 'nothing') as breaks,
  old_values,
  new_values,
  old_last_offset,
  new_first_offset,
  changed_at,
  changes,
  coalesce(registered_schemas, '[]') as registered_schemas,
  read_by,
  format('%s/%s', cluster, topic) as resource,
  case when why_not is not null then 'skip' when worst = 'info' then 'ok' else 'alarm' end as status,
  case worst when 'warning' then 'warning' else 'critical' end as severity,
  case
    when why_not is not null then format('Store %s of %s can''t be judged, as %s.', store, application_id, why_not)
    when worst = 'info'
      then format(
        'Store %s of %s: %s values looked at, %s schema version%s in the log, %s compatible change%s.',
        store, application_id, values_profiled, coalesce(versions, 1),
        case when coalesce(versions, 1) = 1 then '' else 's' end,
        coalesce(harmless, 0), case when coalesce(harmless, 0) = 1 then '' else 's' end
      )
    else format(
      'In store %s of %s, %s%s since %s UTC; the log still holds %s old values beside %s new ones, so %s.',
      store, application_id, what_broke,
      case when breaking > 3 then format(' and %s more', breaking - 3) else '' end,
      left((changed_at at time zone 'UTC')::text, 16), old_values, new_values,
      case worst
        when 'critical' then 'the new release can''t restore the old state'
        else 'the previous release can''t read the new state'
      end
    )
  end as reason,
  case
    when why_not is not null or worst = 'info' then null
    when worst = 'critical'
      then format(
        'Before %s restarts or rebalances, make its reader accept both kinds of %s, or rewrite the values of up to'
        || ' %s UTC (the last is at %s, partition and offset); otherwise the restore fails or loses them.',
        application_id, path, left((old_last_at at time zone 'UTC')::text, 16), old_last_offset
      )
    else format(
      'Don''t roll %s back, and don''t run both releases side by side, until its previous release accepts %s as it'
      || ' is from offset %s (partition first) on.',
      application_id, path, new_first_offset
    )
  end as advice,
  -- Not the application: a release changes the schema, nothing that ails the application's machine does.
  jsonb_build_array(format('topic:%s/%s', cluster, topic)) as touches,
  records is not null and (values_profiled = 0 or coalesce(format in ('string', 'binary'), false)) as nothing_to_judge
from judged
