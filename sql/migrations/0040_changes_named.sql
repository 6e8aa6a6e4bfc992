-- What a change of a state store's values may be, with the kinds that came later.
comment on column metrics.state_store_change_hourly.change is
'type_changed, type_widened, type_narrowed, type_rolled_back, [optional_]field_removed, [optional_]field_added, field_made_optional, field_made_required, field_rolled_back, nullability_gained, nullability_lost, nullability_rolled_back, fractions_rolled_back, constant_added, constant_removed';
