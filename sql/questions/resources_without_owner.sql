/*
title: Which resources have no owner
subject: coverage
description: >
  Resources without an owner, by kind and cluster. Set owners by tags, or by `owners` in the config.
params:
  kind: {type: text, description: 'Kind of resource, such as topic or group', default: null, example: topic}
columns:
  kind: Kind of resource
  key: Key, to match a pattern of `owners` in the config
  name: Name
  cluster: Kafka cluster; null for AWS resources
  application: Application; null if not known
*/
select
  kind,
  key,
  name,
  cluster,
  application
from public.resource
where owner is null and (:kind is null or kind = :kind)
order by kind asc, key asc
