-- Groups that read old records: from the hour a group was rewound, or created after other groups of its cluster. Groups of
-- the last `hours` hours; whether a group has caught up since is not known here.
create or replace function public.groups_replaying(as_of timestamptz, hours integer) returns table (
  cluster text, group_id text, since timestamptz,
  is_new boolean                               -- created; false: rewound
) language sql stable rows 20 as $$
  select
    cluster,
    group_id,
    coalesce(rewound_at, first_hour),
    rewound_at is null
  from (
    select
      cluster,
      group_id,
      min(hour) as first_hour,
      max(hour) filter (where status = 'rewind') as rewound_at,
      min(min(hour)) over (partition by cluster) as cluster_first_hour
    from metrics.consumer_group_hourly
    where hour > as_of - make_interval(hours => hours) and hour <= as_of
    group by cluster, group_id
  ) as g
  where rewound_at is not null or first_hour > cluster_first_hour
$$;
comment on function public.groups_replaying is
'Groups that were rewound, or created after other groups of their cluster, in the last hours, and since when.';
