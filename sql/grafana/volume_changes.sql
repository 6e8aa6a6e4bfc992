-- Types, sizes, and attachments that a volume had.
select
  h.valid_from,
  h.valid_to,
  h.volume_type,
  h.size_gib,
  h.provisioned_iops,
  h.provisioned_throughput_mib_s,
  h.instance_id
from public.volume_history as h
where h.volume_id = :volume
order by h.valid_from desc
