DROP TABLE reclaim.rate_limit_tiers;
DROP TABLE reclaim.rate_limits;
