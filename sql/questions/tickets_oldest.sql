/*
title: Which tickets are open longest
subject: findings
description: >
  Open tickets by age, with cause, acknowledgement, and tracker.
columns:
  opened_hour: First firing hour (UTC)
  severity: Severity when it last fired
  title: Title in the tracker
  resource_name: Resource
  role: root, follows, or alone
  cause: Title of the ticket of its cause; null if there is none
  acknowledged_by: Person who acknowledged it; null if nobody did
  muted: wont_fix or snoozed; null if not muted
  external_key: Issue key; null if not filed yet
  last_firing_hour: Newest firing hour (UTC)
*/
select
  opened_hour,
  severity,
  title,
  resource_name,
  role,
  cause,
  acknowledged_by,
  muted,
  external_key,
  last_firing_hour
from public.tickets_open
order by opened_hour asc, public.severity_rank(severity) asc, ticket_id asc
