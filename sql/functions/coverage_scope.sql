-- Name of the account or the cluster that a row of `detect.coverage` is about, by the name of what was queried;
-- `is_account` is null where the source belongs to neither.
create or replace function detect.coverage_scope(source text, resource_name text) returns table (
  name text, is_account boolean
) language sql immutable as $$
  select
    coalesce(
      substring(resource_name from ' of ([^ ]+) at '), -- `broker of shop at b1:9999`: over JMX
      split_part(split_part(resource_name, ' ', 1), '/', 1) -- `shop broker 3 log dirs`, `1234/eu-west-1 volumes`
    ),
    case
      when resource_name ~ '^[^/ ]+/[a-z]{2}(-[a-z]+)+-[0-9]' then true
      when starts_with(source, 'kafka') or resource_name ~ ' of [^ ]+ at ' then false
    end
$$;
