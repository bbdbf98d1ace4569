DROP TABLE reclaim.key_sets;
