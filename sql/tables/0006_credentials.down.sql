DROP TABLE reclaim.access_keys;
