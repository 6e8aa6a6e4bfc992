-- What Auto Scaling did with instances: that one was taken out of service, and why, no metric tells.
create table metrics.scaling_activity_hourly (
  hour timestamptz not null,  -- Hour in which it began (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  activity_id text not null,  -- Scaling activity
  scaling_group text not null,  -- Auto Scaling group
  instance_id text,  -- EC2 instance that it launches or terminates; null: its description names none
  is_termination boolean not null,  -- Whether it takes the instance away
  description text,  -- In AWS's words: what it does
  cause text,  -- In AWS's words: why
  status text,  -- InProgress, Successful, Failed, Cancelled, …
  started_at timestamptz not null,  -- When it began
  ended_at timestamptz,  -- When it ended; null: it hadn't when it was asked
  primary key (hour, account, region, activity_id)
) partition by range (hour);
comment on table metrics.scaling_activity_hourly is
'Activities of Auto Scaling groups that began in the hour: instances launched and terminated, and why.';

-- EC2's status checks of an instance, and which machines stand for one another.
create table metrics.instance_health_hourly (
  hour timestamptz not null,  -- Start of the hour (UTC)
  account text not null,  -- AWS account id
  region text not null,  -- AWS region
  instance_id text not null,  -- EC2 instance id
  machines text not null,  -- Machines it stands with: its Auto Scaling group, else its tag application, else itself
  scaling_group text,  -- Auto Scaling group (tag aws:autoscaling:groupName)
  application text,  -- Tag application
  state text,  -- running, stopped, terminated, …
  is_spot boolean,  -- Whether AWS may take it back at any time
  launched_at timestamptz,  -- Launch time
  observed_at timestamptz not null,  -- When it was asked
  activities_known boolean not null,  -- Whether Auto Scaling told the activities of this hour in its region
  minutes_checked integer,  -- Minutes with a status check; null: CloudWatch didn't answer
  minutes_instance_failed integer,  -- Minutes in which its own check failed: its system doesn't answer
  minutes_system_failed integer,  -- Minutes in which the check of AWS's hardware under it failed
  minutes_volumes_failed integer,  -- Minutes in which its volumes couldn't be reached
  failing_since timestamptz,  -- Since when a check has failed without a pause, up to the last that is known; null: the last passed
  primary key (hour, account, region, instance_id)
) partition by range (hour);
comment on table metrics.instance_health_hourly is
'An hour of an EC2 instance by EC2''s status checks.';
