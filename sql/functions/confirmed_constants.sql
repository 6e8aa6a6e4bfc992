-- Constants that were added to, or removed from, an enumeration in values of a changelog. One is confirmed if it was absent for
-- `absent_hours`, before or since, and if its position does not move with the age of records: a first occurrence that moves
-- by more than `moves_ratio` of elapsed time depends on record age. Past hours count if their log held at least
-- `known_share` of the values of this hour.
create or replace function public.confirmed_constants(
  of_hour timestamptz, absent_hours integer, known_share double precision, moves_ratio double precision
) returns table (
  cluster text, topic text, path text, change text, old_version integer, new_version integer, is_confirmed boolean
) language sql stable rows 10 as $$
  select
    c.cluster,
    c.topic,
    c.path,
    c.change,
    c.old_version,
    c.new_version,
    case c.change
      when 'constant_added' then c.new_first_at - s.first_at
      else s.last_at - c.old_last_at
    end >= make_interval(hours => absent_hours)
    and past.is_known
    and not coalesce(past.is_moving, false) as is_confirmed
  from metrics.state_store_change_hourly as c
  inner join metrics.state_store_hourly as s on c.hour = s.hour and c.cluster = s.cluster and c.topic = s.topic
  cross join lateral (
    select
      bool_or(
        b.hour <= c.hour - make_interval(hours => absent_hours)
        and b.values_profiled >= s.values_profiled * known_share
      ) as is_known,
      bool_or(
        case c.change when 'constant_added' then c.new_first_at - a.new_first_at else c.old_last_at - a.old_last_at end
        > (c.hour - a.hour) * moves_ratio
      ) as is_moving
    from metrics.state_store_hourly as b
    left join metrics.state_store_change_hourly as a
      on
        b.hour = a.hour and c.cluster = a.cluster and c.topic = a.topic and c.path = a.path and c.change = a.change
        and string_to_array(coalesce(c.old_type, c.new_type), ', ')
        && string_to_array(coalesce(a.old_type, a.new_type), ', ')
    where
      b.cluster = c.cluster and b.topic = c.topic and b.values_profiled > 0
      and b.hour >= c.hour - make_interval(hours => absent_hours) * 1.25
      and b.hour <= c.hour - make_interval(hours => absent_hours) / 4
  ) as past
  where c.hour = of_hour and c.change in ('constant_added', 'constant_removed')
$$;
comment on function public.confirmed_constants is
'Enumeration constants of a changelog that were added or removed for good, rather than by the time of day or record age.';
