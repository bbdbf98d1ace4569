DROP TABLE reclaim.auth_cleanup_events;
