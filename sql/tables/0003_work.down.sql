DROP TABLE reclaim.mailbox;
DROP TABLE reclaim.work_items;
