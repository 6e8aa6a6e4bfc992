-- New consumer groups and how their trial went, by the last verdict on each; it stays after the trial.
create or replace view public.consumer_trials as
select
  e.identity ->> 'cluster' as cluster,  -- Kafka cluster
  e.identity ->> 'group_id' as group_id,  -- Group
  e.owner,  -- Who owns it; null: unassigned
  cast(e.metrics ->> 'trial_since' as timestamptz) as trial_since,  -- Its first hour (UTC)
  cast(e.metrics ->> 'tried_hours' as integer) as tried_hours,  -- Hours with normal traffic that count
  cast(e.metrics ->> 'kept_up_hours' as integer) as kept_up_hours,  -- Of these, hours in which it kept up
  case when e.reason in ('recent', 'on_trial', 'lag_unknown', 'traffic_unknown') then 'on trial' else e.reason end
    as verdict,  -- on trial, passed, failed, never_commits, untracked, or why there is no trial: renamed, ephemeral, no_members
  e.message,  -- The verdict in words
  e.hour  -- Hour of the verdict (UTC)
from (
  -- First only which hour: a group has a verdict each hour, and all of them as a whole would have to be sorted.
  select
    fingerprint,
    max(hour) as hour
  from detect.evaluation
  where detector = 'consumer_trial_failed' and reason not in ('established', 'excepted')
  group by fingerprint
) as newest
inner join detect.evaluation as e on newest.fingerprint = e.fingerprint and newest.hour = e.hour
order by e.hour desc, e.identity ->> 'cluster' asc, e.identity ->> 'group_id' asc;
