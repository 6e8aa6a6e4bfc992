-- EBS volumes that pods claim, with the pod, and what enlarges them: the claim, or Strimzi's node pool. A claim keeps its
-- volume, so an hour in which Kubernetes did not respond has the claims of the latest response, at most 24 hours before.
create or replace function inventory.pod_volumes(as_of timestamptz) returns table (
  volume_id text, claim_namespace text, claim text, claim_pod text, claim_role text, claim_cluster text,
  claim_broker_id integer, claim_endpoint text, claim_node_pool text, storage_class text,
  claim_owner text, claim_application text
) language sql stable rows 100 as $$
  select distinct on (c.volume_id)
    c.volume_id, c.namespace, c.claim, c.pod, p.role, p.cluster, p.broker_id, p.endpoint, p.node_pool, c.storage_class,
    p.owner, p.app
  from inventory.pod_claim_hourly as c
  inner join inventory.pod_hourly as p using (hour, kubernetes, namespace, pod)
  where c.hour > as_of - interval '24 hours' and c.hour <= as_of and c.volume_id is not null
  order by c.volume_id, c.hour desc, c.kubernetes, c.namespace, c.pod
$$;
comment on function inventory.pod_volumes is
'EBS volumes that pods claim, as last reported in the 24 hours that end with an hour: the claim, its pod, and the pod''s broker or endpoint, owner, and application. A volume of several pods counts for the first.';
