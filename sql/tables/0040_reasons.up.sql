-- Why a team keeps what it keeps, in its own words: a legal basis. Ledgers and certificates say so.
ALTER TABLE reclaim.column_decisions ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE reclaim.cascade_participants ADD COLUMN disabled_reason text NOT NULL DEFAULT '';

-- Replaced by functions with another argument.
DROP FUNCTION IF EXISTS reclaim.column_decide(text, text, text);
DROP FUNCTION IF EXISTS reclaim.cascade_switch(text, text);
