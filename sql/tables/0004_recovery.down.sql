DROP TABLE reclaim.verification_codes;
DROP TABLE reclaim.auth_cleanup_log;
