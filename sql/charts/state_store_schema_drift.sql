/*
title: Schema changes of the values
unit: ""
kind: table
why: "Each changed path with both types, value counts, first and last offsets, and what the change breaks."
*/
select
  path,
  replace(change, '_', ' ') as change,
  coalesce(old_type, 'absent') as before,
  coalesce(new_type, 'absent') as after,
  case
    when strict_only and (breaks_backward or breaks_forward) then 'strict readers only'
    when breaks_backward and breaks_forward then 'restore and rollback'
    when breaks_backward then 'restore'
    when breaks_forward then 'rollback'
    else 'nothing'
  end as breaks,
  old_count as old_values,
  new_count as new_values,
  old_last_offset as last_old_offset,
  new_first_offset as first_new_offset,
  new_first_at as first_new_at,
  old_example,
  new_example
from metrics.state_store_change_hourly
where hour = :hour and cluster = :cluster and topic = :topic
order by strict_only asc, breaks_backward desc, breaks_forward desc, old_version asc, path asc
