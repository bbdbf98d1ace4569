ALTER TABLE reclaim.installation DROP COLUMN cooldown;
DROP TABLE reclaim.address_cooldowns;
