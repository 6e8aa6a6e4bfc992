-- evaluation_not_ok (0031) finds alarms of an hour as well; each evaluation was put into both.
drop index detect.evaluation_alarm;
