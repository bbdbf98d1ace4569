DROP FUNCTION reclaim.cleanup_old_rate_limit_buckets();
DROP FUNCTION reclaim.check_rate_limit(text, integer, integer);
DROP FUNCTION reclaim.admit(text[], integer[], integer[], integer[]);
DROP FUNCTION reclaim.limit_wait(text, integer, integer, integer, timestamptz);
DROP FUNCTION reclaim.limit_rows(text, integer, timestamptz);
DROP FUNCTION reclaim.limit_clock();
DROP TABLE reclaim.rate_limit_tiers;
DROP TABLE reclaim.rate_limits;
