-- Stores the dependencies of an hour in place of those of an earlier hour.
insert into detect.resource_link (upstream, downstream, basis, seen_hour)
select l.upstream, l.downstream, l.basis, max(l.seen_hour)
from public.resource_links(cast(:hour as timestamptz)) as l
where l.upstream is not null and l.downstream is not null
group by l.upstream, l.downstream, l.basis
