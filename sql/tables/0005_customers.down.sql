DROP TABLE reclaim.reminders;
DROP TABLE reclaim.customer_log;
