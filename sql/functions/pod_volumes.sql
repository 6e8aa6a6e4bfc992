-- EBS volumes that pods claimed in an hour, with the pod, and what enlarges them: the claim, or Strimzi's node pool.
create or replace function inventory.pod_volumes(as_of timestamptz) returns table (
  volume_id text, claim_namespace text, claim text, claim_pod text, claim_role text, claim_cluster text,
  claim_broker_id integer, claim_endpoint text, claim_node_pool text, storage_class text
) language sql stable rows 100 as $$
  select distinct on (c.volume_id)
    c.volume_id, c.namespace, c.claim, c.pod, p.role, p.cluster, p.broker_id, p.endpoint, p.node_pool, c.storage_class
  from inventory.pod_claim_hourly as c
  inner join inventory.pod_hourly as p using (hour, kubernetes, namespace, pod)
  where c.hour = as_of and c.volume_id is not null
  order by c.volume_id, c.kubernetes, c.namespace, c.pod
$$;
comment on function inventory.pod_volumes is
'EBS volumes that pods claimed in an hour: the claim, its pod, and the pod''s broker or endpoint. A volume of several pods counts for the first.';
