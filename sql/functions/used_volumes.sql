-- EBS volumes of each broker and application in an hour: those of its instance. A node of Kubernetes has volumes of many
-- pods: one that a pod claims is used by that pod alone.
create or replace function inventory.used_volumes(as_of timestamptz) returns table (
  cluster text, endpoint text, is_broker boolean, account text, region text, volume_id text
) language sql stable rows 500 as $$
  select u.cluster, u.endpoint, u.is_broker, v.account, v.region, v.volume_id
  from (
    select cluster, endpoint, true as is_broker, broker_id, instance_id from metrics.broker_hourly where hour = as_of
    union
    select cluster, endpoint, false, null, instance_id from metrics.jvm_app_hourly where hour = as_of
  ) as u
  inner join inventory.volume_hourly as v on v.hour = as_of and u.instance_id = v.instance_id
  left join inventory.pod_volumes(as_of) as k on v.volume_id = k.volume_id
  where k.volume_id is null
    or (u.cluster = k.claim_cluster and (u.broker_id = k.claim_broker_id or u.endpoint = k.claim_endpoint))
$$;
comment on function inventory.used_volumes is
'EBS volumes of each broker and application in an hour: those of its instance, but for those that other pods claim.';
