-- Why a team keeps what it keeps, in its own words: a legal basis. Ledgers and certificates say so.
ALTER TABLE reclaim.column_decisions ADD COLUMN reason text NOT NULL DEFAULT '';
ALTER TABLE reclaim.cascade_participants ADD COLUMN disabled_reason text NOT NULL DEFAULT '';
-- What a table refused is tried again when an operator asks; until then, and if it refuses once more, it is kept.
ALTER TABLE reclaim.erasure_kept ADD COLUMN again boolean NOT NULL DEFAULT false;

-- Replaced by functions with another argument.
DROP FUNCTION IF EXISTS reclaim.column_decide(text, text, text);
DROP FUNCTION IF EXISTS reclaim.cascade_switch(text, text);
