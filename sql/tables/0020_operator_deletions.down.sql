DROP TABLE reclaim.auth_cleanup_reasons;
