/*
title: Which groups are on trial
subject: consumers
description: >
  New consumer groups and their trial of 24 hours with normal traffic: verdict, hours evaluated, hours in
  which they kept up.
params:
  cluster: {type: text, description: Kafka cluster, default: null, example: orders-prod}
columns:
  cluster: Kafka cluster
  group_id: Consumer group
  owner: Owner; null if unassigned
  verdict: on trial, passed, failed, or why there is no trial
  trial_since: First hour of the trial (UTC)
  tried_hours: Hours that count
  kept_up_hours: Of these, hours in which it kept up
  message: Message of the newest verdict
  hour: Hour of the verdict (UTC)
*/
select
  cluster,
  group_id,
  owner,
  verdict,
  trial_since,
  tried_hours,
  kept_up_hours,
  message,
  hour
from public.consumer_trials
where :cluster is null or cluster = :cluster
order by verdict = 'on trial' desc, hour desc, cluster asc, group_id asc
