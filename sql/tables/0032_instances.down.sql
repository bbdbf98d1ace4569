ALTER TABLE reclaim.instances DROP COLUMN has_broker, DROP COLUMN refused_last_hour;
