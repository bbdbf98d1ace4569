-- The language of a customer's mails when the team's table has none: that of the owner's last freeze or recovery. Cleared with what
-- is personal.
ALTER TABLE reclaim.customer_told ADD COLUMN language text;
