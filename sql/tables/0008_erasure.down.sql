DROP TABLE reclaim.cascade_receipts, reclaim.erasures, reclaim.cascade_participants;
