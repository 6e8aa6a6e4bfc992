-- Values that a Schema Registry framed are compared by their registered schemas.
alter table metrics.state_store_hourly
  add column uncompared text,  -- Which registered schemas couldn't be compared, and why; null: none, or its values aren't framed
  add column schemas jsonb;  -- Schemas that frame its values, oldest first: [{schema_id, registered_as, format, values, first_offset, last_offset}, …]
alter table metrics.state_store_change_hourly
  add column old_schema_id integer,  -- Registered schema of the old values; null: inferred from the values
  add column new_schema_id integer;  -- Registered schema that is written now; null: inferred from the values
comment on column metrics.state_store_change_hourly.strict_only is
'Breaks only readers that refuse unknown fields, missing optional ones, fractions for integers, or what an open content model might have held';
comment on column metrics.state_store_path_hourly.type is
'integer, number, string, boolean, object, array, null, mixed (within one array); framed, long, binary at the root; of registered schemas the type as their format writes it';
