DROP TABLE reclaim.instances, reclaim.customer_mails, reclaim.console_sessions;
