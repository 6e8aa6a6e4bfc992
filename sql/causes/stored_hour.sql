-- Hour of the stored resources; null: none are stored.
select max(as_of) as as_of from detect.resource
